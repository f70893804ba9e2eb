import { link, mkdir, mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { flattenWhenDeep } from "../../../../agent/node-disk/flatten.ts";
import { createHoleSum, findHole, refuseHoles } from "../../../../agent/node-disk/holes.ts";

const MIB = 1024 ** 2;
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-holes-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const sparse = async (name: string, bytes: number) => {
  await writeFile(join(directory, name), "x");
  await truncate(join(directory, name), bytes);
};

test("a layer of ordinary files, links and a hole that is small is copied", async () => {
  await mkdir(join(directory, "home/user"), { recursive: true });
  await writeFile(join(directory, "home/user/a"), Buffer.alloc(3 * MIB, 1));
  await sparse("home/user/b", 200 * MIB);
  await symlink("/etc/passwd", join(directory, "passwd"));
  expect(await findHole(directory)).toBeUndefined();
  await expect(refuseHoles(directory, findHole)).resolves.toBeUndefined();
});

test("a file that is a hole of 6 GiB is refused by its name and both its sizes, with what to do about it", async () => {
  await mkdir(join(directory, "home"));
  await sparse("home/disk\n.img", 6_144 * MIB);
  await expect(refuseHoles(directory, findHole)).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(
      /^the file \/home\/disk\\n\.img is sparse: it is 6144 MiB long and takes 1 MiB .*delete it/,
    ) as unknown,
  });
});

test("many files with holes are refused like a large one, and the error names the largest", async () => {
  for (let i = 0; i < 6; i++) await sparse(`part-${i}`, (i === 3 ? 220 : 200) * MIB);
  await expect(refuseHoles(directory, findHole)).rejects.toThrow(/largest of many sparse files/);
});

test("a file with many names counts once", async () => {
  await sparse("one", 250 * MIB);
  for (let i = 0; i < 10; i++) await link(join(directory, "one"), join(directory, `name-${i}`));
  expect(await findHole(directory)).toBeUndefined();
});

test("links are not followed out of the layer", async () => {
  const outside = await mkdtemp(join(tmpdir(), "svc-holes-outside-"));
  await writeFile(join(outside, "big"), "");
  await truncate(join(outside, "big"), 6_144 * MIB);
  await symlink(outside, join(directory, "out"));
  await symlink(join(outside, "big"), join(directory, "big"));
  expect(await findHole(directory)).toBeUndefined();
  await rm(outside, { recursive: true });
});

test("with a storage driver that does not report its layers no layer is checked", async () => {
  await expect(refuseHoles(undefined, findHole)).resolves.toBeUndefined();
});

test("a file whose data fills its size is no hole, however large", () => {
  const sum = createHoleSum();
  const full = { size: 2 ** 40, blocks: 2 ** 31, inode: "1", links: 1, path: "/full" };
  expect(sum.add(full)).toBeUndefined();
  expect(sum.add({ ...full, blocks: 2 ** 31 - 600_000, inode: "2" })).toMatchObject({ path: "/full" });
});

test("an image is made one layer when it is deep, and not with a hole in any of its layers", async () => {
  const flattened: string[] = [];
  const layers = ["top", "middle", "bottom"].map((name) => join(directory, name));
  const image = (count: number) => ({
    findHole,
    containers: {
      layers: () => Promise.resolve(count),
      layerDirectories: () => Promise.resolve(layers),
      flatten: (name: string) => Promise.resolve(void flattened.push(name)),
    },
  });
  for (const layer of layers) await mkdir(layer);
  await writeFile(join(directory, "middle/file"), Buffer.alloc(MIB, 1));
  await flattenWhenDeep("shallow", image(59));
  await flattenWhenDeep("deep", image(60));
  await sparse("bottom/disk.img", 300 * MIB);
  await expect(flattenWhenDeep("holed", image(60))).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(/^the file \/disk\.img is sparse/) as unknown,
  });
  expect(flattened).toEqual(["deep"]);
});

/** A file that a copy out of a sandbox writes: whole or not at all. */

import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { expect, onTestFinished, test } from "vitest";
import { writeWhole } from "../../../cli/inside/part.ts";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "svc-part-test-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
const written = (path: string, text: string) =>
  writeWhole(path, 0o640, (file) => pipeline(Readable.from([text]), file));

test("a file is there when all of it has come, with its rights, and nothing beside it", async () => {
  const path = folder();
  await writeWhole(join(path, "new"), 0o750, async (file) => {
    expect(readdirSync(path)).toEqual([expect.stringMatching(/^\.svc-part-/)]);
    await pipeline(Readable.from(["text"]), file);
  });
  expect(readdirSync(path)).toEqual(["new"]);
  expect(readFileSync(join(path, "new"), "utf8")).toBe("text");
  expect((statSync(join(path, "new")).mode & 0o777).toString(8)).toBe("750");
});

test("what breaks leaves what was there before, and no part", async () => {
  const path = folder();
  writeFileSync(join(path, "old"), "before");
  for (const name of ["old", "new"]) {
    const broken = writeWhole(join(path, name), 0o644, async (file) => {
      await new Promise((done) => file.write("half", done));
      file.destroy();
      throw new Error("cut");
    });
    await expect(broken).rejects.toThrow("cut");
  }
  expect(readdirSync(path)).toEqual(["old"]);
  expect(readFileSync(join(path, "old"), "utf8")).toBe("before");
});

test("parts that a killed process left an hour ago go with the next file, and nothing else does", async () => {
  const path = folder();
  const [left, underWay] = [`.svc-part-${"0".repeat(16)}`, `.svc-part-${"1".repeat(16)}`];
  const others = [".svc-part-notes", `${left}.bak`, "old"];
  const before = new Date(Date.now() - 2 * 3_600_000);
  for (const name of [left, underWay, ...others]) writeFileSync(join(path, name), "half");
  mkdirSync(join(path, `.svc-part-${"2".repeat(16)}`));
  for (const name of readdirSync(path)) if (name !== underWay) utimesSync(join(path, name), before, before);
  await written(join(path, "new"), "text");
  const stay = [underWay, `.svc-part-${"2".repeat(16)}`, ...others, "new"];
  expect(readdirSync(path).toSorted()).toEqual(stay.toSorted());
});

test("a link stays one, and its file has the new text", async () => {
  const path = folder();
  mkdirSync(join(path, "there"));
  writeFileSync(join(path, "there/file"), "before");
  symlinkSync("there/file", join(path, "link"));
  await written(join(path, "link"), "after");
  expect(
    readdirSync(path, { withFileTypes: true })
      .find(({ name }) => name === "link")
      ?.isSymbolicLink(),
  ).toBe(true);
  expect(readFileSync(join(path, "there/file"), "utf8")).toBe("after");
});

test("a device is written to and stays what it is", async () => {
  await written("/dev/null", "text");
  expect(statSync("/dev/null").isCharacterDevice()).toBe(true);
  expect(statSync("/dev/null").mode & 0o777).toBe(0o666);
});

test("a folder that is not there is named by the path of the file", async () => {
  const path = join(folder(), "no/file");
  await expect(written(path, "text")).rejects.toThrow(`${path} cannot be written: ENOENT`);
});

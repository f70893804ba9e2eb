/** Stored memory images: those that last are checked by their hashes, those that live for one call by the file system and the boot. */

import { mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { snapshotFiles } from "../../../../agent/snapshots/store/files.ts";
import { type Manifest, parseManifest, type StoredFile } from "../../../../agent/snapshots/store/manifest.ts";
import { build, resources } from "../../../support/fakes/agent-parts.ts";

const origins = { kernel: "6", architecture: "x86_64", cpuFlags: "sse2", criu: "4.2", runc: "1.1", envd: "0.6" };
const never = new AbortController().signal;
const NAMES = ["core-1.img", "pages-1.img"];
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "svc-files-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function toManifest(files: readonly StoredFile[]): Manifest {
  return {
    format: 1,
    snapshotId: "s1",
    sandboxId: "i1",
    executionId: "e1",
    kind: "checkpoint",
    memory: true,
    containerId: "c1",
    build,
    resources,
    runtime: "/runtime/1",
    controlToken: "t",
    origins,
    memoryBytes: 5,
    diskBytes: 0,
    createdAt: 1,
    files: [...files],
  };
}

async function stored(durable: boolean) {
  const files = snapshotFiles(root);
  const draft = await files.draft("s1", durable);
  for (const name of NAMES) writeFileSync(join(draft.images, name), "12345");
  await draft.finish(toManifest);
  return { files, manifest: await files.manifest("s1"), at: (name: string) => join(files.images("s1"), name) };
}

test("an image that lasts has the hash of each file; one that lives for one call has none, and names the boot", async () => {
  const lasting = (await stored(true)).manifest;
  expect(lasting.files.map(({ name, sha256 }) => [name, sha256?.length])).toEqual(NAMES.map((name) => [name, 64]));
  expect(lasting.boot).toBeUndefined();
  const { manifest, files } = await stored(false);
  expect(manifest.files).toEqual(
    NAMES.map((name) => ({ name, size: 5, changedAt: expect.any(Number) as unknown as number })),
  );
  expect(manifest.boot).toMatch(/^[0-9a-f-]{36}$/);
  await files.verify("s1", manifest, never);
});

test.each([true, false])(
  "an image (that lasts: %s) keeps the names that its dump gave to open files, and not the dump's logs",
  async (durable) => {
    const files = snapshotFiles(root);
    const draft = await files.draft("s1", durable);
    writeFileSync(join(draft.images, "core-1.img"), "12345");
    writeFileSync(join(draft.work, "link-remaps"), "one\0");
    writeFileSync(join(draft.work, "dump.log"), "much");
    await draft.finish(toManifest);
    expect(String(await files.links("s1"))).toBe("one\0");
    expect(readdirSync(files.directory("s1")).sort()).toEqual(["images", "link-remaps", "manifest.json"]);
  },
);

test.each([true, false])(
  "an image (that lasts: %s) that cannot be read has no final name, and its draft leaves nothing",
  async (durable) => {
    const files = snapshotFiles(root);
    const draft = await files.draft("s1", durable);
    symlinkSync("nowhere", join(draft.images, "core-1.img"));
    await expect(draft.finish(toManifest)).rejects.toMatchObject({ code: "ENOENT" });
    expect((await files.list()).stored).toEqual([]);
    await draft.discard();
    expect(readdirSync(root)).toEqual([]);
  },
);

test("an image that lasts stays whole when only the times of its files change, and not when their content does", async () => {
  const { files, manifest, at } = await stored(true);
  utimesSync(at("pages-1.img"), 1, 1);
  expect(await files.untouched("s1", manifest)).toBe(false);
  await files.verify("s1", manifest, never);
  writeFileSync(at("pages-1.img"), "1234x");
  await expect(files.verify("s1", manifest, never)).rejects.toMatchObject({ code: "snapshot_corrupt" });
});

test("files that were written again, each verified, count as untouched with their new times, and with their content alone", async () => {
  const { files, manifest, at } = await stored(true);
  utimesSync(at("pages-1.img"), 1, 1);
  expect(await files.untouched("s1", manifest)).toBe(false);
  await files.keepTimes("s1");
  const kept = await files.manifest("s1");
  expect(kept).toEqual({ ...manifest, files: kept.files });
  expect(await files.untouched("s1", kept)).toBe(true);
  writeFileSync(at("pages-1.img"), "1234x");
  await expect(files.verify("s1", kept, never)).rejects.toMatchObject({ code: "snapshot_corrupt" });
});

test("the times alone vouch for an image that lives for one call, so it keeps them", async () => {
  const { files, manifest, at } = await stored(false);
  utimesSync(at("pages-1.img"), 1, 1);
  await files.keepTimes("s1");
  expect(await files.manifest("s1")).toEqual(manifest);
});

test.each<{ what: string; change: (at: (name: string) => string, manifest: Manifest) => Manifest; code: string }>([
  {
    what: "a file was touched",
    change(at, manifest) {
      utimesSync(at("pages-1.img"), 1, 1);
      return manifest;
    },
    code: "snapshot_corrupt",
  },
  {
    what: "a file has another size",
    change(at, manifest) {
      writeFileSync(at("core-1.img"), "1");
      return manifest;
    },
    code: "snapshot_corrupt",
  },
  {
    what: "a file is gone",
    change(at, manifest) {
      rmSync(at("core-1.img"));
      return manifest;
    },
    code: "snapshot_files_missing",
  },
  {
    what: "the machine has restarted",
    change: (_at, manifest) => ({ ...manifest, boot: "another boot" }),
    code: "snapshot_corrupt",
  },
  {
    what: "its manifest lacks the hashes and names no boot",
    change(_at, { boot: _boot, ...rest }) {
      return parseManifest(JSON.stringify(rest), "s1");
    },
    code: "snapshot_corrupt",
  },
])("an image that lives for one call is refused when $what", async ({ change, code }) => {
  const { files, manifest, at } = await stored(false);
  await expect(files.verify("s1", change(at, manifest), never)).rejects.toMatchObject({ code });
});

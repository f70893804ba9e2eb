import { execFileSync } from "node:child_process";
import { appendFile, link, lstat, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BlobError } from "../../../../agent/blobs/content/blob-error.ts";
import { PERIOD_MS } from "../../../../agent/blobs/content/refs.ts";
import { storeSource } from "../../../../agent/blobs/sources.ts";
import { createTransfers } from "../../../../agent/blobs/transfers.ts";
import { uploadTree } from "../../../../agent/blobs/upload.ts";
import { type MemoryBlobStore, memoryBlobStore } from "../../../support/fakes/memory-blob-store.ts";
import { gateway } from "../../../support/runner/promises.ts";
import { download, makeTree, readTree, threeBlobs, trees, uploading, writeRanges } from "./trees.ts";

const MIB = 1024 * 1024;
const { signal } = new AbortController();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-transfers-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

const ownPlace = () => mkdtemp(join(folder, "own-"));

describe("a tree", () => {
  test.each([{ sealed: false }, { sealed: true }])(
    "is downloaded as it was uploaded, with its holes (%o)",
    async ({ sealed }) => {
      await fc.assert(
        fc.asyncProperty(trees, async (files) => {
          const place = await ownPlace();
          const root = join(place, "tree");
          await makeTree(root, files);
          const { deps } = uploading(memoryBlobStore(), { sealed });
          const { ref } = await uploadTree(deps, { root, kind: "tree" }, signal);
          const to = join(place, "copy");
          await download(deps, { ref, to, sources: [storeSource(deps.store as MemoryBlobStore)] });
          const [source, copy] = [await readTree(root), await readTree(to)];
          expect(copy.entries).toEqual(source.entries);
          expect(copy.allocated).toBeLessThanOrEqual(source.allocated);
          expect((await readdir(place)).toSorted()).toEqual(["copy", "tree"]);
        }),
        { numRuns: 8 },
      );
    },
  );

  test("that is one file, the image of a disk, costs what its data is, not its size", async () => {
    const place = await ownPlace();
    const root = join(place, "disk.img");
    await writeRanges(root, 300 * MIB, [
      { at: 5, length: 10, seed: 1 },
      { at: 250 * MIB, length: 100_000, seed: 2 },
    ]);
    const store = memoryBlobStore();
    const { deps } = uploading(store);
    const progress: unknown[] = [];
    const { ref, manifest } = await uploadTree(
      deps,
      { root, kind: "disk", progress: (now) => progress.push(now) },
      signal,
    );
    expect(manifest.blobs).toHaveLength(2);
    expect(manifest.entries).toMatchObject([{ path: "", type: "file", size: 300 * MIB }]);
    expect(progress.at(-1)).toMatchObject({ totalBytes: expect.any(Number) as number, sentBytes: 8 * MIB });
    const { totalBytes, doneBytes } = progress.at(-1) as { totalBytes: number; doneBytes: number };
    expect(doneBytes).toBe(totalBytes);
    expect(totalBytes).toBeLessThan(MIB);
    const to = join(place, "copy.img");
    await download(deps, { ref, to, sources: [storeSource(store)] });
    execFileSync("cmp", [root, to]);
    expect((await lstat(to)).blocks * 512).toBeLessThan(MIB);
  });

  test("of many small files is few blobs", async () => {
    const place = await ownPlace();
    const root = join(place, "images");
    await mkdir(root);
    for (let index = 0; index < 60; index++)
      await writeRanges(join(root, `file-${index}`), 3_000 + index, [{ at: 0, length: 4_000, seed: 1 + (index % 3) }]);
    const { deps } = uploading(memoryBlobStore());
    const { manifest } = await uploadTree(deps, { root, kind: "memory" }, signal);
    expect(manifest.blobs).toHaveLength(1);
  });

  test.each([
    {
      named: "a pipe",
      make: (root: string) => Promise.resolve(execFileSync("mkfifo", [join(root, "pipe")])),
      says: "it is no file, directory or link",
    },
    {
      named: "a name that is not UTF-8",
      make: (root: string) => writeFile(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff])]), "x"),
      says: "is not UTF-8",
    },
  ])("with $named is refused before anything is sent", async ({ make, says }) => {
    const place = await ownPlace();
    await make(place);
    const store = memoryBlobStore();
    const { deps } = uploading(store);
    await expect(uploadTree(deps, { root: place, kind: "tree" }, signal)).rejects.toMatchObject({
      fault: "changed",
      message: expect.stringContaining(says) as string,
    });
    expect(store.objects.size).toBe(0);
  });

  test("that is written to while it is read is refused, and no manifest is stored", async () => {
    const { root } = await threeBlobs(await ownPlace());
    const store = memoryBlobStore();
    store.before = (call) => (call === "put" ? appendFile(join(root, "a"), "more") : undefined);
    const { deps } = uploading(store);
    await expect(uploadTree(deps, { root, kind: "tree" }, signal)).rejects.toMatchObject({ fault: "changed" });
    // Its three blobs only.
    expect(store.objects.size).toBe(3);
  });

  test("with a file under two names has both, as files of their own", async () => {
    const place = await ownPlace();
    const root = join(place, "tree");
    await mkdir(root);
    await writeFile(join(root, "one"), "content");
    await link(join(root, "one"), join(root, "two"));
    const { deps } = uploading(memoryBlobStore());
    const { ref } = await uploadTree(deps, { root, kind: "tree" }, signal);
    await download(deps, { ref, to: join(place, "copy"), sources: [storeSource(deps.store as MemoryBlobStore)] });
    expect((await readTree(join(place, "copy"))).entries).toEqual((await readTree(root)).entries);
  });
});

describe("an upload", () => {
  test("that is cut at any call goes on where it was, and sends no blob twice", async () => {
    const { root, place } = await threeBlobs(await ownPlace());
    // Each blob is looked for under two names, then written; the manifest too.
    for (let cut = 1; cut <= 12; cut++) {
      const store = memoryBlobStore();
      const { deps } = uploading(store);
      let calls = 0;
      store.before = () => {
        if (++calls === cut) throw new BlobError("unreachable", "the store is away");
      };
      await expect(uploadTree(deps, { root, kind: "tree" }, signal), `cut at ${cut}`).rejects.toMatchObject({
        fault: "unreachable",
      });
      const before = new Map(store.objects);
      const puts = store.calls.put;
      store.before = () => undefined;
      const { ref } = await uploadTree(deps, { root, kind: "tree" }, signal);
      expect(store.calls.put - puts, `cut at ${cut}`).toBe(4 - before.size);
      for (const [key, bytes] of before) expect(store.objects.get(key)).toBe(bytes);
      if (cut % 4 !== 0) continue;
      const to = join(place, `copy-${cut}`);
      await download(deps, { ref, to, sources: [storeSource(store)] });
      expect((await readTree(to)).entries).toEqual((await readTree(root)).entries);
    }
  });

  test("of the same tree again sends nothing and has the same reference", async () => {
    const { root } = await threeBlobs(await ownPlace());
    const store = memoryBlobStore();
    const { deps, clock } = uploading(store, { sealed: true });
    const first = await uploadTree(deps, { root, kind: "tree" }, signal);
    expect(first.sentBytes).toBeGreaterThan(0);
    clock.now += PERIOD_MS;
    const puts = store.calls.put;
    expect(await uploadTree(deps, { root, kind: "tree" }, signal)).toMatchObject({ ref: first.ref, sentBytes: 0 });
    expect(store.calls.put).toBe(puts);
  });

  test("counts on no blob that may be garbage by now, unless a base of it holds the blob", async () => {
    const { root } = await threeBlobs(await ownPlace());
    const store = memoryBlobStore();
    const { deps, clock } = uploading(store);
    const first = await uploadTree(deps, { root, kind: "tree" }, signal);
    clock.now += 2 * PERIOD_MS;
    const based = await uploadTree(deps, { root, kind: "tree", bases: [first.manifest] }, signal);
    expect(based.manifest.blobs).toEqual(first.manifest.blobs);
    // The manifest alone is written.
    expect(store.objects.size).toBe(5);
    const again = await uploadTree(deps, { root, kind: "tree" }, signal);
    expect(again.manifest.blobs.map(([ref]) => ref)).not.toEqual(first.manifest.blobs.map(([ref]) => ref));
  });

  test("neither looks for nor sends what a base has", async () => {
    const { root } = await threeBlobs(await ownPlace());
    const store = memoryBlobStore();
    const { deps } = uploading(store);
    const { manifest } = await uploadTree(deps, { root, kind: "tree" }, signal);
    await appendFile(join(root, "a"), "one more line");
    const { size, put } = { ...store.calls };
    await uploadTree(deps, { root, kind: "tree", bases: [manifest] }, signal);
    // The blob of the small files and the manifest.
    expect([store.calls.size - size, store.calls.put - put]).toEqual([4, 2]);
  });

  test("that took longer than blobs are safe is refused", async () => {
    const { root } = await threeBlobs(await ownPlace());
    const store = memoryBlobStore();
    const { deps, clock } = uploading(store);
    store.before = () => {
      clock.now += PERIOD_MS;
    };
    await expect(uploadTree(deps, { root, kind: "tree" }, signal)).rejects.toMatchObject({ fault: "late" });
  });

  test("that its caller cuts ends, and begins nothing more", async () => {
    const { root } = await threeBlobs(await ownPlace());
    const store = memoryBlobStore();
    const controller = new AbortController();
    store.before = (call) => {
      if (call === "put") controller.abort(new Error("given up"));
    };
    const { deps } = uploading(store);
    await expect(
      uploadTree({ ...deps, transfers: createTransfers(1) }, { root, kind: "tree" }, controller.signal),
    ).rejects.toThrow("given up");
    expect(store.calls.put).toBe(1);
  });

  test("holds no more blobs in memory than the limit of transfers, together with others", async () => {
    const { root } = await threeBlobs(await ownPlace());
    const state = { now: 0, most: 0 };
    const two = gateway();
    const store = memoryBlobStore();
    store.before = async (call) => {
      if (call !== "put") return;
      state.most = Math.max(state.most, ++state.now);
      // The first one waits for a second, and all of them a moment for one too many.
      if (state.now > 1) two.resolve();
      await two.promise;
      await new Promise((resolve) => setTimeout(resolve, 5));
      state.now--;
    };
    const { deps } = uploading(store);
    const shared = { ...deps, transfers: createTransfers(2) };
    const other = await threeBlobs(await ownPlace());
    await writeRanges(join(other.root, "other"), 14 * MIB, [{ at: 0, length: 14 * MIB, seed: 2 }]);
    await Promise.all([root, other.root].map((each) => uploadTree(shared, { root: each, kind: "tree" }, signal)));
    // Manifests are written outside of the limit, one for each upload.
    expect(state.most).toBeLessThanOrEqual(4);
  });

  test("writes a blob again that a reader has found damaged", async () => {
    const { root, place } = await threeBlobs(await ownPlace());
    const store = memoryBlobStore();
    const { deps } = uploading(store);
    const { ref, manifest } = await uploadTree(deps, { root, kind: "tree" }, signal);
    const [[blob] = [""]] = manifest.blobs;
    store.objects.set(`sha256/${blob}`, Buffer.from("damaged"));
    await expect(download(deps, { ref, to: join(place, "copy"), sources: [storeSource(store)] })).rejects.toMatchObject(
      {
        fault: "damaged",
      },
    );
    await uploadTree(deps, { root, kind: "tree", distrusted: new Set([blob]) }, signal);
    await download(deps, { ref, to: join(place, "copy"), sources: [storeSource(store)] });
  });
});

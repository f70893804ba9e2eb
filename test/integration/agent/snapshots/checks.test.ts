/** Checks of stored snapshots on a node with real files, and a directory as the blob store. */

import { createHash, randomUUID } from "node:crypto";
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createReader, storeSource } from "../../../../agent/blobs/sources.ts";
import { createSnapshotChecks, type SnapshotChecksDeps } from "../../../../agent/snapshots/check/checks.ts";
import { createImageReads } from "../../../../agent/snapshots/check/image-reads.ts";
import { checkNodeCopy } from "../../../../agent/snapshots/check/node-copy.ts";
import { checkStoreCopy, checkStoredImage } from "../../../../agent/snapshots/check/store-copy.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { type BeyondNode, newNode, newPlace, storedOn } from "./beyond-nodes.ts";

let node: BeyondNode;
beforeEach(async () => {
  node = await newNode(await newPlace(), "one");
});

const options = () => {
  const counts = { total: 0, read: 0 };
  return {
    counts,
    signal: new AbortController().signal,
    total: (bytes: number) => void (counts.total = bytes),
    read: (bytes: number) => void (counts.read += bytes),
  };
};

/** A snapshot whose manifest has the digest of its memory, as real ones do. */
async function stored(id: string, kind: "pause" | "checkpoint" = "checkpoint") {
  const snapshot = await storedOn(node, id, kind);
  const directory = join(node.own, "snapshots", id);
  const page = join(directory, "images", "pages-1.img");
  const content = await readFile(page);
  const manifest = JSON.parse(await readFile(join(directory, "manifest.json"), "utf8")) as Record<string, unknown>;
  const sha256 = createHash("sha256").update(content).digest("hex");
  const files = [{ name: "pages-1.img", size: content.length, sha256, changedAt: (await stat(page)).ctimeMs }];
  const origins = manifest["origins"] as Record<string, unknown>;
  await writeFile(join(directory, "manifest.json"), JSON.stringify({ ...manifest, origins, files }));
  return { snapshot, page, disk: join(node.own, "disks", `${id}.img`) };
}

const images = () => createImageReads(node.upload.containers, () => node.clock.now);

const check = (id: string, given = options(), reads = images()) =>
  checkNodeCopy(
    id,
    { files: node.files, containers: node.fetching.docker.containers, images: reads, snapshots: node.stores.snapshots },
    given,
  );

const stateOf = (parts: Awaited<ReturnType<typeof check>>) =>
  Object.fromEntries(parts.map(({ part, state }) => [part, state]));

describe("the node's copy", () => {
  test("is whole when its memory has the digests of its manifest, and its disk and image are read to their end", async () => {
    await stored("one");
    const given = options();
    expect(stateOf(await check("one", given))).toEqual({ memory: "whole", disk: "read", image: "whole" });
    expect(given.counts.read).toBeGreaterThan("memory of one".length + "disk of one".length);
  });

  test("has damaged memory when one byte differs, and the file is named", async () => {
    const { page } = await stored("one");
    await writeFile(page, "Memory of one");
    const [memory] = await check("one");
    expect(memory).toMatchObject({ part: "memory", state: "damaged", faulty: 1 });
    expect(memory?.faults).toEqual(["pages-1.img (13 bytes): its content has changed since it was written"]);
  });

  test.each([
    ["a file of another size", (page: string) => writeFile(page, "short"), "damaged", /has 5 bytes/],
    ["a file that is gone", (page: string) => rm(page), "missing", /is gone/],
  ] as const)("says it of %s", async (_case, change, state, text) => {
    const { page } = await stored("one");
    await change(page);
    const [memory] = await check("one");
    expect(memory).toMatchObject({ state, faults: [expect.stringMatching(text)] });
  });

  test("without its manifest, disk or image lacks these parts, and the others are still read", async () => {
    const { disk } = await stored("one", "pause");
    await rm(join(node.own, "snapshots", "one", "manifest.json"));
    await rm(disk);
    expect(stateOf(await check("one"))).toEqual({ memory: "missing", disk: "missing", image: "unread" });
  });

  test("of a checkpoint whose disk is gone lacks it", async () => {
    const { disk } = await stored("one");
    await rm(disk);
    expect(stateOf(await check("one"))).toEqual({ memory: "whole", disk: "missing", image: "missing" });
  });

  test("says that the disk is unread where Docker has it", async () => {
    await stored("one");
    node.state.ownDisks = false;
    node.state.images.add("svc/snapshot:one");
    expect(stateOf(await check("one"))).toEqual({ memory: "whole", disk: "unread", image: "whole" });
  });

  test("that a sandbox uses meanwhile is not judged", async () => {
    await stored("one", "pause");
    node.stores.snapshots.setResuming("one", true);
    await expect(check("one")).rejects.toMatchObject({ code: "conflict" });
    await expect(check("two")).rejects.toMatchObject({ code: "not_found" });
  });

  test("shares the read of one image with others, for ten minutes", async () => {
    await Promise.all([stored("one"), stored("two")]);
    const reads = images();
    await check("one", options(), reads);
    await check("two", options(), reads);
    expect(node.state.saved).toBe(1);
    node.clock.now += 600_000;
    await check("two", options(), reads);
    expect(node.state.saved).toBe(2);
  });
});

describe("the copy in the blob store", () => {
  const from = () => {
    const { codec, transfers } = { codec: node.upload.blobs.codec(), transfers: node.upload.blobs.transfers };
    const reader = createReader({ sources: [storeSource(node.share)], codec, now: () => node.clock.now });
    return { reader, transfers };
  };
  const inStore = async (ref: string, given = options()) => checkStoreCopy(ref, from(), given);

  /** The file of a blob in the share. */
  const fileOf = async (ref: string) => {
    const [id = ""] = ref.split(".");
    const names = await readdir(join(node.own, "..", "share"), { recursive: true });
    return join(node.own, "..", "share", names.find((name) => name.includes(id)) ?? "none");
  };

  test("is whole when each blob has the content of its name", async () => {
    const { snapshot } = await stored("one");
    const { ref } = await node.uploadNow(snapshot);
    const given = options();
    expect(stateOf(await inStore(ref, given))).toEqual({ memory: "whole", disk: "whole", image: "whole" });
    expect(given.counts.read).toBe(given.counts.total);
  });

  test("names the part of a blob that was changed, and goes on with the others", async () => {
    const { snapshot } = await stored("one");
    const { ref } = await node.uploadNow(snapshot);
    const { parts } = JSON.parse((await node.reader.read(ref, options().signal)).toString()) as {
      parts: { disk: string };
    };
    const disk = JSON.parse((await node.reader.read(parts.disk, options().signal)).toString()) as {
      blobs: [string, number][];
    };
    const file = await fileOf(disk.blobs[0]?.[0] ?? "");
    const bytes = await readFile(file);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    await writeFile(file, bytes);
    expect(stateOf(await inStore(ref))).toEqual({ memory: "whole", disk: "damaged", image: "whole" });
    await rm(file);
    expect(stateOf(await inStore(ref))).toEqual({ memory: "whole", disk: "missing", image: "whole" });
  });

  test("of a template is its image alone, whole or with the blob that is gone", async () => {
    const { snapshot } = await stored("one");
    const { ref } = await node.uploadNow(snapshot);
    const { parts } = JSON.parse((await node.reader.read(ref, options().signal)).toString()) as {
      parts: { image: string };
    };
    const given = options();
    expect(await checkStoredImage(parts.image, from(), given)).toMatchObject({ part: "image", state: "whole" });
    expect(given.counts.read).toBe(given.counts.total);
    await rm(await fileOf(parts.image));
    expect(await checkStoredImage(parts.image, from(), options())).toMatchObject({ part: "image", state: "missing" });
  });

  test("without its manifest is missing, and its other parts are unread", async () => {
    const { snapshot } = await stored("one");
    const { ref } = await node.uploadNow(snapshot);
    await rm(await fileOf(ref));
    expect(stateOf(await inStore(ref))).toEqual({ memory: "missing", disk: "unread", image: "unread" });
  });
});

describe("checks in the background", () => {
  const asked = () => ({ snapshotId: "one", checkId: randomUUID() });

  function checksOf(over: Partial<SnapshotChecksDeps> = {}) {
    const begun: { end: () => void; fail: (error: Error) => void; signal: AbortSignal }[] = [];
    const checks = createSnapshotChecks({
      isHere: () => true,
      check: (_what, { signal, total, read }) =>
        new Promise((resolve, reject) => {
          total(10);
          read(4);
          signal.addEventListener("abort", () => reject(signal.reason as Error));
          begun.push({ end: () => resolve([]), fail: reject, signal });
        }),
      waitMs: 5,
      ...over,
    });
    onTestFinished(() => checks.stop());
    return { begun, checks };
  }

  test("run one at a time, and tell how far they are", async () => {
    const { begun, checks } = checksOf();
    const [first, second] = [asked(), asked()];
    expect(await checks.ask(first)).toEqual({ state: "running", doneBytes: 4, totalBytes: 10, parts: [] });
    expect(await checks.ask(second)).toMatchObject({ state: "waiting" });
    begun[0]?.end();
    await expect.poll(() => checks.ask(first)).toMatchObject({ state: "ended" });
    await expect.poll(() => checks.ask(second)).toMatchObject({ state: "running" });
    expect(begun).toHaveLength(2);
  });

  test("read both copies where this node has one and reads the store too, under one id", async () => {
    const read: unknown[] = [];
    const { checks } = checksOf({
      check: ({ stored }) => {
        read.push(stored?.ref);
        return Promise.resolve([]);
      },
    });
    const one = asked();
    const stored = { ref: `${"a".repeat(64)}.1`, projectId: "p" };
    await expect.poll(() => checks.ask(one)).toMatchObject({ state: "ended" });
    await expect.poll(() => checks.ask({ ...one, stored })).toMatchObject({ state: "ended" });
    expect(read).toEqual([undefined, stored.ref]);
  });

  test("that have ended, of which the node keeps the results, do not keep others from beginning", async () => {
    const { checks } = checksOf({ check: () => Promise.resolve([]) });
    for (let count = 0; count < 70; count++) {
      const one = asked();
      await expect.poll(() => checks.ask(one)).toMatchObject({ state: "ended" });
    }
    const failing = checksOf({ check: () => Promise.reject(new AppError("conflict", "the snapshot is in use")) });
    for (let count = 0; count < 70; count++)
      await expect(failing.checks.ask(asked())).rejects.toMatchObject({ code: "conflict" });
  });

  test("end when they are cancelled, and the next has its turn", async () => {
    const { begun, checks } = checksOf();
    const [first, second] = [asked(), asked()];
    await checks.ask(first);
    await checks.ask(second);
    checks.cancel(first.snapshotId, first.checkId);
    checks.cancel(first.snapshotId, first.checkId);
    expect(begun[0]?.signal.aborted).toBe(true);
    await expect.poll(() => checks.ask(second)).toMatchObject({ state: "running" });
  });

  test("end when nobody asks about them any more", async () => {
    const { begun, checks } = checksOf({ idleMs: 20 });
    await checks.ask(asked());
    await expect.poll(() => begun[0]?.signal.aborted).toBe(true);
  });

  test("tell each caller why one has failed", async () => {
    const { begun, checks } = checksOf();
    const one = asked();
    await checks.ask(one);
    begun[0]?.fail(new AppError("conflict", "the snapshot is in use"));
    for (let time = 0; time < 2; time++) await expect(checks.ask(one)).rejects.toMatchObject({ code: "conflict" });
  });

  test("do not begin for a snapshot that this node does not have", async () => {
    const { begun, checks } = checksOf({ isHere: () => false });
    expect(await checks.ask(asked())).toMatchObject({ state: "absent" });
    expect(begun).toEqual([]);
    const stored = { ref: `${"a".repeat(64)}.1`, projectId: "p" };
    expect(await checks.ask({ ...asked(), stored })).toMatchObject({ state: "running" });
  });
});

/** Uploads of stored snapshots, into a directory as the blob store. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { BlobError } from "../../../../agent/blobs/content/blob-error.ts";
import { fetchManifest } from "../../../../agent/blobs/download.ts";
import { collectGarbage } from "../../../../agent/blobs/garbage.ts";
import { listAll } from "../../../../agent/blobs/stores/store.ts";
import { readNote } from "../../../../agent/snapshots/beyond/note.ts";
import { snapshotUploads } from "../../../../agent/snapshots/beyond/snapshot-uploads.ts";
import { createUploads, type Uploads } from "../../../../agent/snapshots/beyond/uploads.ts";
import type { Snapshot } from "../../../../agent/store/snapshots.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { ENVD_VERSION } from "../../../../shared/version.ts";
import { type BeyondNode, IMAGE, newNode, newPlace, origins, storedOn } from "./beyond-nodes.ts";

const log = createLog({ component: "test", level: "silent" });
const { signal } = new AbortController();
const DAY = 86_400_000;

let node: BeyondNode;
beforeEach(async () => {
  node = await newNode(await newPlace(), "one");
});

const stored = (id: string, kind: Snapshot["kind"], takenAt = 0) => storedOn(node, id, kind, { takenAt });

/** Uploads of all snapshots of the node, in rounds. */
function uploadsOf(
  { store, stores, upload, clock }: BeyondNode,
  { paused = true, isRead = (_snapshotId: string): boolean => false } = {},
) {
  const state = { changes: 0 };
  const uploads = createUploads({
    of: snapshotUploads({ stores, paused, upload, isRead }),
    store,
    stored: stores.uploads,
    onChange: () => state.changes++,
    now: () => clock.now,
    log,
    everyMs: 5,
  });
  onTestFinished(() => uploads.stop());
  return Object.assign(uploads, { state });
}

const refOf = (uploads: Uploads, id: string) => {
  const found = uploads.of(id);
  return found !== undefined && "ref" in found ? found.ref : undefined;
};

test("a named snapshot and a paused sandbox are in the store with memory, disk and the image below, under one reference each", async () => {
  const [one, two] = [await stored("one", "checkpoint"), await stored("two", "pause")];
  const own = uploadsOf(node);
  expect(own.of("one")).toEqual({ doneBytes: 0, totalBytes: 0 });
  own.start();
  for (const { id } of [one, two]) await expect.poll(() => refOf(own, id)).toBeDefined();
  for (const snapshot of [one, two]) {
    const ref = refOf(own, snapshot.id) ?? "";
    const whole = await fetchManifest(node.reader, ref, signal);
    expect(whole.origins).toEqual({ ...origins, envd: ENVD_VERSION });
    expect(whole.entries.map(({ path }) => path)).toEqual(["", "images", "images/pages-1.img", "manifest.json"]);
    expect(readNote(ref, whole.note)).toMatchObject({
      id: snapshot.id,
      kind: snapshot.kind,
      imageBelow: IMAGE,
      disk: { containerId: `c${snapshot.id}`, controlToken: "control" },
      record: "the orchestrator's row",
    });
    const { disk = "", image = "" } = whole.parts ?? {};
    const [blob] = (await fetchManifest(node.reader, disk, signal)).blobs.map(([each]) => each);
    expect((await node.reader.read(blob ?? "", signal)).toString()).toBe(`disk of ${snapshot.id}`);
    const below = await fetchManifest(node.reader, image, signal);
    expect(below.entries.map(({ path }) => path)).toEqual(["", "layer.tar"]);
  }
  // The image is read once for both.
  expect(node.state.saved).toBe(1);
  expect(own.state.changes).toBe(2);
});

test("what waits for the store is counted with its bytes, until it is there", async () => {
  const all = [await stored("one", "checkpoint"), await stored("two", "pause")];
  const own = uploadsOf(node);
  const bytes = all.reduce((sum, { memoryBytes, diskBytes }) => sum + memoryBytes + diskBytes, 0);
  expect(own.queue()).toEqual({ waiting: 2, bytes, failures: 0 });
  own.start();
  for (const { id } of all) await expect.poll(() => refOf(own, id)).toBeDefined();
  expect(own.queue()).toEqual({ waiting: 0, bytes: 0, failures: 0 });
});

test("a paused sandbox stays on its node where the operator has not asked for more", async () => {
  await stored("named", "checkpoint", 1);
  await stored("paused", "pause");
  const own = uploadsOf(node, { paused: false });
  own.start();
  await expect.poll(() => refOf(own, "named")).toBeDefined();
  expect(own.of("paused")).toBeUndefined();
});

test("the checkpoint of a fork that waits for long is not uploaded, and the other snapshots do not wait for it", async () => {
  const { id } = await storedOn(node, "passing", "checkpoint", { boot: "this one" });
  await stored("named", "checkpoint", 1);
  const own = uploadsOf(node);
  own.start();
  await expect.poll(() => refOf(own, "named")).toBeDefined();
  expect(own.of(id)).toEqual({ doneBytes: 0, totalBytes: 0 });
});

test("a snapshot that another node reads is uploaded when that has ended, and the others do not wait for it", async () => {
  const [moving, other] = [await stored("moving", "pause"), await stored("other", "checkpoint")];
  const read = new Set(["moving"]);
  const own = uploadsOf(node, { isRead: (id) => read.has(id) });
  own.start();
  await expect.poll(() => refOf(own, other.id)).toBeDefined();
  expect(refOf(own, moving.id)).toBeUndefined();
  read.clear();
  await expect.poll(() => refOf(own, moving.id)).toBeDefined();
});

test("while the store is away the report has the reason, and the upload begins when it is back", async () => {
  await stored("one", "checkpoint");
  const own = uploadsOf(node);
  node.state.away = new BlobError("unreachable", "the store is away");
  own.start();
  await expect.poll(() => own.of("one")).toEqual({ failure: "the store is away" });
  expect(own.queue()).toMatchObject({ waiting: 1, failures: 1 });
  node.state.away = undefined;
  node.clock.now += 15_000;
  await expect.poll(() => refOf(own, "one")).toBeDefined();
});

test("a snapshot whose disk is Docker's own stays on its node, and the report says why", async () => {
  await stored("docker", "pause");
  const own = uploadsOf(node);
  node.state.ownDisks = false;
  own.start();
  await expect
    .poll(() => own.of("docker"))
    .toEqual({ failure: "snapshot docker stays on this node: its disk is not in a file of its own (diskLimit)" });
});

test("a sandbox that is resumed while it is uploaded has no reference", async () => {
  const { id } = await stored("one", "pause");
  const own = uploadsOf(node);
  const begun = new Promise<void>((resolve) => {
    node.state.beforeDisk = () => {
      node.stores.snapshots.spend(id, () => undefined);
      resolve();
      return Promise.resolve();
    };
  });
  own.start();
  await begun;
  await own.stop();
  expect(own.of(id)).toBeUndefined();
  expect(node.stores.uploads.get(id)).toBeUndefined();
});

test("a snapshot whose reference came too late is uploaded again, with blobs that are young enough", async () => {
  const { id } = await stored("one", "checkpoint");
  const own = uploadsOf(node);
  own.start();
  await expect.poll(() => refOf(own, id)).toBeDefined();
  const first = refOf(own, id);
  node.clock.now += DAY;
  own.again(id);
  expect(own.of(id)).toMatchObject({ failure: expect.stringContaining("not recorded in time") as string });
  node.clock.now += 15_000;
  await expect.poll(() => refOf(own, id)).toBeDefined();
  expect(refOf(own, id)).not.toBe(first);
  // The image too: its earlier blobs may be garbage.
  expect(node.state.saved).toBe(2);
});

test("the reference of a deleted snapshot is forgotten", async () => {
  const { id } = await stored("one", "checkpoint");
  const own = uploadsOf(node);
  own.start();
  await expect.poll(() => refOf(own, id)).toBeDefined();
  node.stores.snapshots.remove(id);
  await expect.poll(() => node.stores.uploads.ids()).toEqual([]);
});

test("a collector keeps all parts of a snapshot whose reference it has, and deletes those of others", async () => {
  await stored("kept", "checkpoint");
  await stored("dropped", "checkpoint", 1);
  const own = uploadsOf(node);
  own.start();
  for (const id of ["kept", "dropped"]) await expect.poll(() => refOf(own, id)).toBeDefined();
  await own.stop();
  const ref = refOf(own, "kept") ?? "";
  const collector = { store: node.share, now: () => node.clock.now + 2 * DAY };
  const { removed } = await collectGarbage(collector, { live: [{ ref, reader: node.reader }] }, signal);
  // Disk, memory and the two manifests of the other one; the image is of both.
  expect(removed).toBe(4);
  const whole = await fetchManifest(node.reader, ref, signal);
  for (const part of [
    whole,
    ...(await Promise.all(Object.values(whole.parts ?? {}).map((each) => fetchManifest(node.reader, each, signal)))),
  ])
    for (const [blob] of part.blobs) await node.reader.read(blob, signal);
  const left: string[] = [];
  for await (const { key } of listAll(node.share, "sha256/", signal)) left.push(key);
  expect(left).toHaveLength(6);
});

test("what the image is unpacked to is removed", async () => {
  await stored("one", "checkpoint");
  const own = uploadsOf(node);
  own.start();
  await expect.poll(() => refOf(own, "one")).toBeDefined();
  expect(execFileSync("ls", ["-A", join(node.own, "work")], { encoding: "utf8" })).toBe("");
});

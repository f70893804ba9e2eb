/** Snapshots of one node that another one fetches from a directory as the blob store. */

import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { BlobError } from "../../../../agent/blobs/content/blob-error.ts";
import { fetchManifest } from "../../../../agent/blobs/download.ts";
import { createArrivals } from "../../../../agent/snapshots/beyond/arrivals.ts";
import { fetchSnapshot } from "../../../../agent/snapshots/beyond/fetch-snapshot.ts";
import type { Snapshot } from "../../../../agent/store/snapshots.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createKeyedMutex } from "../../../../shared/program/keyed-mutex.ts";
import { gateway } from "../../../support/runner/promises.ts";
import { type BeyondNode, IMAGE, newNode, newPlace, storedOn } from "./beyond-nodes.ts";

const { signal } = new AbortController();

let place: string;
let one: BeyondNode;
let two: BeyondNode;
beforeEach(async () => {
  place = await newPlace();
  [one, two] = [await newNode(place, "one"), await newNode(place, "two")];
});

/** Stores a snapshot on the first node and in the blob store. */
async function uploaded(kind: Snapshot["kind"], id = "x") {
  const snapshot = await storedOn(one, id, kind);
  const { ref } = await one.uploadNow(snapshot);
  return { snapshot, ref };
}

/** What the second node is asked, as its API is. */
function arrivalsOf({ store, stores, fetching }: BeyondNode, waitMs = 60_000) {
  const arrivals = createArrivals({
    store,
    snapshots: stores.snapshots,
    peer: () => {
      throw new Error("no test of this file has another node as a source");
    },
    fetch: (wanted, from, options) => fetchSnapshot(wanted, from, fetching, options),
    mutex: createKeyedMutex(),
    waitMs,
  });
  onTestFinished(() => arrivals.stop());
  return arrivals;
}

const asked = (ref: string, more: { readonly snapshotId?: string; readonly memory?: boolean } = {}) => ({
  snapshotId: "x",
  projectId: "project",
  memory: true,
  ref,
  ...more,
});

/** Everything below the node's directories of snapshots and disks. */
const filesOn = ({ own }: BeyondNode) =>
  ["snapshots", "disks", "image", "work"]
    .filter((part) => existsSync(join(own, part)))
    .flatMap((part) => readdirSync(join(own, part), { encoding: "utf8" }).map((name) => `${part}/${name}`))
    .toSorted();

test.each(["pause", "checkpoint"] as const)(
  "a %s is on the second node as on the first: row, memory, disk, and the image below",
  async (kind) => {
    const { snapshot, ref } = await uploaded(kind);
    const arrivals = arrivalsOf(two);
    expect(await arrivals.fetch(asked(ref))).toMatchObject({ here: true });
    const { disk, ...rest } = two.stores.snapshots.get("x") ?? snapshot;
    const { containerId } = snapshot.disk;
    expect({ ...rest, disk: { ...disk, containerId, takenFrom: undefined } }).toEqual(snapshot);
    // A container with the first node's id is one of the first node, also where both share a Docker daemon.
    expect(disk.containerId).not.toBe(containerId);
    // A resume makes its container, and does not look for one first.
    expect(disk.takenFrom).toBe(kind === "pause" ? disk.containerId : undefined);
    for (const path of ["snapshots/x/images/pages-1.img", "snapshots/x/manifest.json"])
      expect(await readFile(join(two.own, path), "utf8")).toBe(await readFile(join(one.own, path), "utf8"));
    const place = `disks/${kind === "pause" ? disk.containerId.slice(1) : "x"}.img`;
    expect(await readFile(join(two.own, place), "utf8")).toBe(await readFile(join(one.own, "disks/x.img"), "utf8"));
    expect(two.state).toMatchObject({ loaded: 1, images: new Set([IMAGE]) });
    expect(await readFile(join(two.own, "image", "layer.tar"), "utf8")).toBe("the layer of the image");
    // The name keeps the image when Docker is pruned.
    expect(two.state.below).toEqual(new Map([["svc/snapshot:x", IMAGE]]));
    expect(await two.files.manifest("x")).toMatchObject({ snapshotId: "x" });
    // It is in the store already.
    expect(two.stores.uploads.get("x")).toMatchObject({ ref });
    expect(filesOn(two).filter((path) => path.startsWith("work/"))).toEqual([]);
    expect(await arrivals.fetch(asked(ref))).toEqual({ here: true, doneBytes: 0, totalBytes: 0 });
    expect(two.state.loaded).toBe(1);
  },
);

test("memory that was fetched counts as untouched, so that a restore does not wait for its hashes", async () => {
  const { snapshot } = await uploaded("pause");
  const images = join(one.own, "snapshots/x/images");
  const files = await Promise.all(
    readdirSync(images).map(async (name) => {
      const content = await readFile(join(images, name));
      const sha256 = createHash("sha256").update(content).digest("hex");
      return { name, size: content.length, sha256, changedAt: (await stat(join(images, name))).ctimeMs };
    }),
  );
  const about = join(one.own, "snapshots/x/manifest.json");
  await writeFile(about, JSON.stringify({ ...(await one.files.manifest("x")), files }));
  const { ref } = await one.uploadNow(snapshot);
  await arrivalsOf(two).fetch(asked(ref));
  const manifest = await two.files.manifest("x");
  expect(manifest.files).toEqual(files.map((file) => ({ ...file, changedAt: expect.any(Number) as number })));
  expect(await two.files.untouched("x", manifest)).toBe(true);
  await two.files.verify("x", manifest, signal);
  expect(filesOn(two)).toContain("snapshots/x");
  expect(readdirSync(join(two.own, "snapshots/x")).toSorted()).toEqual(["images", "manifest.json"]);
});

test("an image that the node has is not fetched again", async () => {
  const { ref } = await uploaded("checkpoint");
  two.state.images.add(IMAGE);
  expect(await arrivalsOf(two).fetch(asked(ref))).toMatchObject({ here: true });
  expect(two.state.loaded).toBe(0);
});

test.each([
  {
    named: "its processor lacks what programs have seen",
    change: (node: BeyondNode) => Object.assign(node.here, { cpuFlags: "sse2" }),
    says: "this machine's processor lacks avx2, which its memory counts on; with memory: false its disk alone starts here",
  },
  {
    named: "its kernel is older",
    change: (node: BeyondNode) => Object.assign(node.here, { kernel: "5.10.0" }),
    says: "its memory is of kernel 6.1.0, and this machine's is older (5.10.0)",
  },
  {
    named: "its CRIU is older",
    change: (node: BeyondNode) => Object.assign(node.here, { criu: "4.1" }),
    says: "its memory is of CRIU 4.2, and this machine's is older (4.1)",
  },
  {
    named: "it does not have the files of its envd",
    change: (node: BeyondNode) => node.state.runtimes.clear(),
    says: "in /runtime/1, and this machine has envd",
  },
  {
    named: "its sandboxes have no disks of their own",
    change: (node: BeyondNode) => Object.assign(node.state, { ownDisks: false }),
    says: "sandboxes of this node have none of their own (diskLimit)",
  },
])("a node refuses memory before it downloads anything when $named", async ({ change, says }) => {
  const { ref } = await uploaded("pause");
  change(two);
  await expect(arrivalsOf(two).fetch(asked(ref))).rejects.toMatchObject({
    code: "snapshot_incompatible",
    message: expect.stringContaining(says) as string,
  });
  expect(two.stores.snapshots.all()).toEqual([]);
  expect(two.state.loaded).toBe(0);
  expect(filesOn(two)).toEqual([]);
});

test("the disk alone is fetched by a node whose processor the memory does not fit, but not for another architecture", async () => {
  const { ref } = await uploaded("pause");
  Object.assign(two.here, { cpuFlags: "sse2", criu: "unknown" });
  expect(await arrivalsOf(two).fetch(asked(ref, { memory: false }))).toMatchObject({ here: true });
  const three = await newNode(place, "three");
  Object.assign(three.here, { architecture: "aarch64" });
  await expect(arrivalsOf(three).fetch(asked(ref, { memory: false }))).rejects.toMatchObject({
    code: "snapshot_incompatible",
    message: expect.stringContaining("its memory is of a machine with x86_64, this one has aarch64") as string,
  });
});

test("a node without room refuses before it downloads anything", async () => {
  const { ref } = await uploaded("pause");
  two.state.refusal = new AppError("no_space", "the node's disk is short");
  await expect(arrivalsOf(two).fetch(asked(ref))).rejects.toMatchObject({ code: "no_space" });
  expect(two.stores.snapshots.all()).toEqual([]);
});

test("a part that is damaged in the store is never started from, and leaves nothing on the node", async () => {
  const { ref } = await uploaded("pause");
  const { parts } = await fetchManifest(one.reader, ref, signal);
  const disk = await fetchManifest(one.reader, parts?.["disk"] ?? "", signal);
  const [blob = ""] = disk.blobs.map(([each]) => each);
  const path = join(place, "share", "sha256", blob.slice(0, 2), blob);
  const bytes = await readFile(path);
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
  await writeFile(path, bytes);
  const arrivals = arrivalsOf(two);
  await expect(arrivals.fetch(asked(ref))).rejects.toMatchObject({ code: "snapshot_corrupt" });
  expect(two.stores.snapshots.all()).toEqual([]);
  // The image stays, because a later try needs it.
  expect(filesOn(two).filter((each) => !each.startsWith("image/"))).toEqual([]);
  expect(two.state.below).toEqual(new Map());
  await rm(path);
  await expect(arrivals.fetch(asked(ref))).rejects.toMatchObject({ code: "snapshot_files_missing" });
});

test("a reference of another snapshot is refused", async () => {
  const { ref } = await uploaded("pause");
  await expect(arrivalsOf(two).fetch(asked(ref, { snapshotId: "y" }))).rejects.toMatchObject({
    code: "snapshot_corrupt",
    message: expect.stringContaining("is of snapshot x, not of y") as string,
  });
});

test("while the store is away the answer says so, and the next request fetches", async () => {
  const { ref } = await uploaded("pause");
  two.state.away = new BlobError("unreachable", "the store /mnt/shared is not there");
  const arrivals = arrivalsOf(two);
  await expect(arrivals.fetch(asked(ref))).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("the store /mnt/shared is not there") as string,
  });
  two.state.away = undefined;
  expect(await arrivals.fetch(asked(ref))).toMatchObject({ here: true });
});

test("requests for a snapshot on its way share one download, and each is told how far it is", async () => {
  const { ref } = await uploaded("pause");
  const [loading, go] = [gateway(), gateway()];
  two.state.beforeLoad = () => {
    loading.resolve();
    return go.promise;
  };
  const arrivals = arrivalsOf(two, 1);
  const first = await arrivals.fetch(asked(ref));
  expect(first.here).toBe(false);
  await loading.promise;
  const [second, third] = await Promise.all([arrivals.fetch(asked(ref)), arrivals.fetch(asked(ref))]);
  expect(second).toEqual(third);
  // Of the image, the memory and the disk the image is there.
  expect(second).toMatchObject({ here: false, doneBytes: "the layer of the image".length });
  expect(second.totalBytes).toBeGreaterThan(second.doneBytes);
  go.resolve();
  await expect.poll(async () => (await arrivals.fetch(asked(ref))).here).toBe(true);
  expect(two.state.loaded).toBe(1);
});

test("a snapshot that is deleted on its way is not waited for, and leaves nothing", async () => {
  const { ref } = await uploaded("pause");
  const loading = gateway();
  let cut = false;
  two.state.beforeLoad = () => {
    loading.resolve();
    return new Promise((resolve) => {
      const looking = setInterval(() => {
        if (!cut) return;
        clearInterval(looking);
        resolve();
      }, 5);
    });
  };
  const arrivals = arrivalsOf(two);
  const asking = arrivals.fetch(asked(ref));
  await loading.promise;
  arrivals.cancel("x");
  cut = true;
  await expect(asking).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("was deleted meanwhile") as string,
  });
  expect(two.stores.snapshots.all()).toEqual([]);
  expect(filesOn(two).filter((each) => !each.startsWith("image/"))).toEqual([]);
});

test("a stopping agent leaves nothing of a download, and the next agent fetches it", async () => {
  const { ref } = await uploaded("pause");
  const [loading, go] = [gateway(), gateway()];
  two.state.beforeLoad = () => {
    loading.resolve();
    return go.promise;
  };
  const arrivals = arrivalsOf(two, 1);
  await arrivals.fetch(asked(ref));
  await loading.promise;
  const stopping = arrivals.stop();
  go.resolve();
  await stopping;
  expect(two.stores.snapshots.all()).toEqual([]);
  expect(filesOn(two).filter((each) => !each.startsWith("image/"))).toEqual([]);
  two.state.beforeLoad = () => Promise.resolve();
  expect(await arrivalsOf(two).fetch(asked(ref))).toMatchObject({ here: true });
});

/** Images of templates in a blob store: uploaded by the node that built them, and fetched by one that has nothing of them. */

import { createHash, randomUUID } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { BlobError } from "../../../../agent/blobs/content/blob-error.ts";
import { collectGarbage } from "../../../../agent/blobs/garbage.ts";
import { createReader, storeSource } from "../../../../agent/blobs/sources.ts";
import type { Uploads } from "../../../../agent/snapshots/beyond/uploads.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { memoryBlobStore } from "../../../support/fakes/memory-blob-store.ts";
import { type ImageNode, imageNode, type Layers, PROJECT } from "./image-nodes.ts";

const { signal } = new AbortController();
const MIB = 2 ** 20;
const DAY = 86_400_000;

/** A layer that does not shrink, so that its blobs are as large as they are. */
function layer(name: string, bytes = 5 * MIB): Buffer {
  const blocks = Array.from({ length: Math.ceil(bytes / 32) }, (_, index) =>
    createHash("sha256").update(`${name} ${index}`).digest(),
  );
  return Buffer.concat(blocks).subarray(0, bytes);
}
const BASE = layer("base");
const APP: Layers = { base: BASE, app: layer("app", 300_000) };

/** Its layers, each by its digest: comparing megabytes byte by byte takes a test minutes. */
const digests = (layers: Layers | undefined) =>
  Object.entries(layers ?? {})
    .map(([name, content]) => `${name} ${createHash("sha256").update(content).digest("hex")}`)
    .toSorted();

const refOf = (uploads: Uploads, id: string) => {
  const found = uploads.of(id);
  return found !== undefined && "ref" in found ? found.ref : undefined;
};

/** Uploads what waits, as one agent process. */
async function upload(node: ImageNode, id: string): Promise<string> {
  const uploads = node.uploads();
  uploads.start();
  await expect.poll(() => refOf(uploads, id)).toBeDefined();
  await uploads.stop();
  return refOf(uploads, id) ?? "";
}

/** Nothing of an unpacked image is left. */
const working = ({ blobs }: ImageNode) => (existsSync(blobs.work) ? readdirSync(blobs.work) : []);

test("the image of a template is in the store, encrypted, and a node that has nothing of it starts from the store alone", async () => {
  const share = memoryBlobStore();
  const one = await imageNode(share);
  const secret = Buffer.from("a secret of the image ".repeat(20_000));
  const { id, image } = one.built({ ...APP, secret });
  const uploads = one.uploads();
  expect(uploads.of(id)).toEqual({ doneBytes: 0, totalBytes: 0 });
  const ref = await upload(one, id);
  expect(working(one)).toEqual([]);
  for (const stored of share.objects.values()) expect(stored.includes("a secret of the image")).toBe(false);

  const two = await imageNode(share);
  const arrivals = two.arrivals();
  const wanted = { image, ref, projectId: PROJECT };
  const both = await Promise.all([arrivals.fetch(wanted), arrivals.fetch(wanted)]);
  expect(both.map(({ here }) => here)).toEqual([true, true]);
  expect(digests(two.docker.images.get(image))).toEqual(digests({ ...APP, secret }));
  expect(two.stores.copies.all()).toEqual([image]);
  expect(working(two)).toEqual([]);
});

test("a layer that two templates of a project share is stored once, and one of another project apart", async () => {
  const share = memoryBlobStore();
  const node = await imageNode(share);
  await upload(node, node.built(APP).id);
  const before = share.objects.size;
  await upload(node, node.built({ base: BASE, other: layer("other", 300_000) }).id);
  const shared = share.objects.size;
  // Its own layer, its small files, its manifest; the five megabytes below are there.
  expect(shared - before).toBe(3);
  await upload(node, node.built(APP, { projectId: "of others" }).id);
  expect(share.objects.size - shared).toBeGreaterThan(3);
});

test("what is not ready, was deleted or has no project is not uploaded, and what gets its project is", async () => {
  const share = memoryBlobStore();
  const node = await imageNode(share);
  const [failed, deleted, ownerless] = [node.built(APP), node.built(APP), node.built(APP, { projectId: null })];
  node.stores.builds.begin(randomUUID(), "template", 0, PROJECT);
  node.stores.builds.fail(failed.id, { message: "failed" }, 0);
  node.stores.builds.remove(deleted.id, 0);
  const uploads = node.uploads();
  for (const { id } of [failed, deleted, ownerless]) expect(uploads.of(id)).toBeUndefined();
  node.stores.builds.own(ownerless.id, PROJECT);
  await upload(node, ownerless.id);
  expect(node.stores.imageUploads.ids()).toEqual([ownerless.id]);
});

test("a template that is deleted while it is uploaded has no reference, and the row of a deleted one goes", async () => {
  const share = memoryBlobStore();
  const node = await imageNode(share);
  const [kept, gone] = [node.built(APP), node.built({ other: layer("other") })];
  await upload(node, kept.id);
  const uploads = node.uploads();
  const begun = new Promise<void>((resolve) => {
    share.before = (call) => {
      if (call !== "put") return;
      node.stores.builds.remove(gone.id, 0);
      node.docker.images.delete(gone.image);
      resolve();
    };
  });
  uploads.start();
  await begun;
  await expect.poll(() => working(node)).toEqual([]);
  node.stores.builds.remove(kept.id, 0);
  await expect.poll(() => node.stores.imageUploads.ids()).toEqual([]);
  expect(uploads.of(gone.id)).toBeUndefined();
});

test("a store that goes away in an upload costs one try: the next one sends what is missing, and the build stays ready", async () => {
  const share = memoryBlobStore();
  const node = await imageNode(share);
  const { id } = node.built(APP);
  share.before = (call) => {
    if (call === "put" && share.calls.put > 1) throw new BlobError("unreachable", "the store is away");
  };
  const uploads = node.uploads();
  uploads.start();
  await expect.poll(() => uploads.of(id)).toEqual({ failure: "the store is away" });
  expect(node.stores.builds.get(id)?.state).toBe("ready");
  const before = share.objects.size;
  expect(before).toBeGreaterThan(0);
  share.before = () => undefined;
  const puts = share.calls.put;
  node.clock.now += 15_000;
  await expect.poll(() => refOf(uploads, id)).toBeDefined();
  expect(share.calls.put - puts).toBe(share.objects.size - before);
});

test("an agent that is killed at any call of an upload leaves no reference, and the next one completes it", async () => {
  const whole = memoryBlobStore();
  const first = await imageNode(whole);
  await upload(first, first.built(APP).id);
  const calls = Object.values(whole.calls).reduce((sum, count) => sum + count, 0);
  expect(calls).toBeGreaterThan(6);
  for (let at = 1; at <= calls; at++) {
    const share = memoryBlobStore();
    const node = await imageNode(share);
    const { id, image } = node.built(APP);
    let count = 0;
    // The process ends here: nothing of it goes on.
    const killed = new Promise<void>((resolve) => {
      share.before = () => {
        if (++count < at) return undefined;
        resolve();
        return new Promise(() => undefined);
      };
    });
    node.uploads(false).start();
    await killed;
    expect(node.stores.imageUploads.ids()).toEqual([]);
    share.before = () => undefined;
    node.restart();
    const ref = await upload(node, id);
    const two = await imageNode(share);
    expect(await two.arrivals().fetch({ image, ref, projectId: PROJECT })).toMatchObject({ here: true });
  }
});

test("an agent that is killed at any call of a fetch has no image of that name, and the next one fetches it whole", async () => {
  const share = memoryBlobStore();
  const one = await imageNode(share);
  const { id, image } = one.built(APP);
  const ref = await upload(one, id);
  const calls = { before: share.calls.get, of: 0 };
  await (await imageNode(share)).arrivals().fetch({ image, ref, projectId: PROJECT });
  calls.of = share.calls.get - calls.before;
  expect(calls.of).toBeGreaterThan(3);
  for (let at = 1; at <= calls.of + 1; at++) {
    const node = await imageNode(share);
    let count = 0;
    const hang = (resolve: () => void) => {
      if (++count < at) return Promise.resolve();
      resolve();
      return new Promise<void>(() => undefined);
    };
    const killed = new Promise<void>((resolve) => {
      share.before = () => hang(resolve);
      // The last step: Docker is about to read it.
      node.docker.state.beforeLoad = () => hang(resolve);
    });
    node
      .arrivals(false)
      .fetch({ image, ref, projectId: PROJECT })
      .catch(() => undefined);
    await killed;
    expect([...node.docker.images.keys()]).toEqual([]);
    share.before = () => undefined;
    node.docker.state.beforeLoad = () => Promise.resolve();
    node.restart();
    expect(await node.arrivals().fetch({ image, ref, projectId: PROJECT })).toMatchObject({ here: true });
    expect(digests(node.docker.images.get(image))).toEqual(digests(APP));
  }
});

test("two nodes that upload the same layers at once both have a reference that holds", async () => {
  const share = memoryBlobStore();
  const [one, two] = [await imageNode(share), await imageNode(share)];
  const built = [one.built(APP), two.built({ ...APP, more: layer("more", 300_000) })];
  const refs = await Promise.all([upload(one, built[0]?.id ?? ""), upload(two, built[1]?.id ?? "")]);
  const third = await imageNode(share);
  for (const [index, ref] of refs.entries()) {
    const wanted = { image: built[index]?.image ?? "", ref, projectId: PROJECT };
    expect(await third.arrivals().fetch(wanted)).toMatchObject({ here: true });
  }
  expect([...third.docker.images.values()].map(digests)).toEqual(
    [APP, { ...APP, more: layer("more", 300_000) }].map(digests),
  );
});

test("a collector keeps what a template that is left shares with a deleted one, and deletes the rest after its grace", async () => {
  const share = memoryBlobStore();
  const node = await imageNode(share);
  const [kept, gone] = [node.built(APP), node.built({ base: BASE, other: layer("other", 300_000) })];
  const ref = await upload(node, kept.id);
  await upload(node, gone.id);
  const reader = createReader({
    sources: [storeSource(share)],
    codec: node.blobs.codec(PROJECT),
    now: () => node.clock.now,
  });
  const collect = (after: number) =>
    collectGarbage({ store: share, now: () => node.clock.now + after }, { live: [{ ref, reader }] }, signal);
  expect((await collect(DAY / 2)).removed).toBe(0);
  expect((await collect(2 * DAY)).removed).toBe(3);
  const two = await imageNode(share);
  expect(await two.arrivals().fetch({ image: kept.image, ref, projectId: PROJECT })).toMatchObject({ here: true });
});

test.each([
  {
    named: "is damaged",
    code: "snapshot_corrupt",
    says: /the store in memory: .*[0-9a-f]{64}/,
    change: (share: ReturnType<typeof memoryBlobStore>, key: string) => {
      const stored = Buffer.from(share.objects.get(key) ?? []);
      stored[stored.length - 1] = (stored.at(-1) ?? 0) ^ 1;
      share.objects.set(key, stored);
    },
  },
  {
    named: "is gone",
    code: "snapshot_files_missing",
    says: /blob [0-9a-f]{64}\.\d+ is in none of 1 sources \(the store in memory\)/,
    change: (share: ReturnType<typeof memoryBlobStore>, key: string) => void share.objects.delete(key),
  },
])("a blob that $named is named in the answer, and no image comes of it", async ({ code, says, change }) => {
  const share = memoryBlobStore();
  const one = await imageNode(share);
  const { id, image } = one.built(APP);
  const ref = await upload(one, id);
  const keys = [...share.objects.keys()];
  for (const key of keys) {
    const two = await imageNode(share);
    const before = share.objects.get(key) ?? Buffer.alloc(0);
    change(share, key);
    const fetched = two.arrivals().fetch({ image, ref, projectId: PROJECT });
    await expect(fetched).rejects.toMatchObject({ code, message: expect.stringMatching(says) as string });
    expect([...two.docker.images.keys(), ...working(two)]).toEqual([]);
    share.objects.set(key, before);
  }
});

test("a node whose disk has no room refuses before it downloads, a store that is away is told, and the next request tries again", async () => {
  const share = memoryBlobStore();
  const one = await imageNode(share);
  const { id, image } = one.built(APP);
  const wanted = { image, ref: await upload(one, id), projectId: PROJECT };
  const two = await imageNode(share);
  const arrivals = two.arrivals();
  two.state.refusal = new AppError("no_space", "the disk of this node is full");
  const gets = share.calls.get;
  await expect(arrivals.fetch(wanted)).rejects.toMatchObject({ code: "no_space" });
  // The manifest alone, which says how large it is.
  expect(share.calls.get - gets).toBe(1);
  two.state.refusal = undefined;
  two.state.away = new BlobError("unreachable", "the share is not mounted");
  await expect(arrivals.fetch(wanted)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("the share is not mounted") as string,
  });
  two.state.away = undefined;
  two.docker.state.beforeLoad = () => Promise.reject(new BlobError("full", "Docker's disk is full"));
  await expect(arrivals.fetch(wanted)).rejects.toMatchObject({ code: "no_space" });
  expect(working(two)).toEqual([]);
  two.docker.state.beforeLoad = () => Promise.resolve();
  expect(await arrivals.fetch(wanted)).toMatchObject({ here: true });
});

test("an image is not read out of Docker onto a disk that has no room for it, and the report says so", async () => {
  const node = await imageNode(memoryBlobStore());
  const { id } = node.built(APP);
  node.state.refusal = new AppError("no_space", "the disk of this node is full");
  const uploads = node.uploads();
  uploads.start();
  await expect
    .poll(() => uploads.of(id))
    .toEqual({ failure: "the image is not read out of Docker: the disk of this node is full" });
  expect(node.docker.state.saved).toBe(0);
});

test("a node's own image that came back from the store stays when copies are removed", async () => {
  const share = memoryBlobStore();
  const node = await imageNode(share);
  const { id, image } = node.built(APP);
  const ref = await upload(node, id);
  node.docker.images.delete(image);
  const arrivals = node.arrivals();
  await arrivals.fetch({ image, ref, projectId: PROJECT });
  node.clock.now += 2 * DAY;
  await arrivals.sweep();
  expect([...node.docker.images.keys()]).toEqual([image]);
  expect(node.stores.copies.all()).toEqual([]);
});

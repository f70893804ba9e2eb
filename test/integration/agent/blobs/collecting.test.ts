/** The collection of garbage that the orchestrator asks a node for, in a store in memory. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createCollecting } from "../../../../agent/blobs/collecting.ts";
import { BlobError } from "../../../../agent/blobs/content/blob-error.ts";
import { createCodec } from "../../../../agent/blobs/content/codec.ts";
import { uploadTree } from "../../../../agent/blobs/upload.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { memoryBlobStore } from "../../../support/fakes/memory-blob-store.ts";
import { gateway } from "../../../support/runner/promises.ts";
import { makeTree, uploading } from "./trees.ts";

const log = createLog({ component: "test", level: "silent" });
const { signal } = new AbortController();
const DAY = 86_400_000;
const KEY = "k".repeat(32);

/** A node with a sealed store, in which two projects have a tree each. */
async function world() {
  const store = memoryBlobStore();
  const { deps, clock } = uploading(store);
  const codec = (domain: string) => createCodec({ keys: [KEY], domain });
  const place = await mkdtemp(join(tmpdir(), "svc-collecting-"));
  onTestFinished(() => rm(place, { recursive: true }));
  await makeTree(join(place, "tree"), [{ path: "a", size: 2_000, ranges: [{ at: 0, length: 2_000, seed: 1 }] }]);
  const refOf = async (projectId: string) => {
    const own = { ...deps, codec: codec(projectId) };
    return (await uploadTree(own, { root: join(place, "tree"), kind: "tree" }, signal)).ref;
  };
  const refs = { one: await refOf("one"), two: await refOf("two") };
  const state = { away: undefined as BlobError | undefined };
  const collecting = createCollecting({
    store: {
      use() {
        if (state.away !== undefined) throw state.away;
        return store;
      },
    },
    blobs: { codec },
    now: () => clock.now,
    log,
  });
  onTestFinished(() => collecting.stop());
  return { store, clock, refs, state, collecting };
}

test("what no project's reference needs is deleted, once it is old enough at the time of the references", async () => {
  const { store, clock, refs, collecting } = await world();
  expect(store.objects.size).toBe(4);
  const live = [{ ref: refs.one, projectId: "one" }];
  const at = clock.now;
  clock.now += 2 * DAY;
  // The references are as old as the blobs: what they do not name may have been recorded since.
  collecting.begin({ at, live });
  expect(await collecting.ended()).toMatchObject({ removed: 0, kept: 4 });
  collecting.begin({ at: clock.now, live });
  expect(await collecting.ended()).toMatchObject({ removed: 2, kept: 2 });
  expect([...store.objects.keys()]).toContain(`sha256/${refs.one}`);
});

test("a reference that cannot be read stops the collection before anything is deleted", async () => {
  const { store, clock, refs, collecting } = await world();
  clock.now += 2 * DAY;
  // Of another project than its name.
  collecting.begin({ at: clock.now, live: [{ ref: refs.one, projectId: "two" }] });
  expect(await collecting.ended()).toBeUndefined();
  expect(store.objects.size).toBe(4);
});

test("one collection runs at a time", async () => {
  const { store, clock, refs, collecting } = await world();
  const [reading, go] = [gateway(), gateway()];
  store.before = async (call) => {
    if (call !== "get") return;
    reading.resolve();
    await go.promise;
  };
  const asked = { at: clock.now, live: [{ ref: refs.one, projectId: "one" }] };
  collecting.begin(asked);
  await reading.promise;
  expect(() => collecting.begin(asked)).toThrow("collects the garbage of the blob store already");
  go.resolve();
  expect(await collecting.ended()).toMatchObject({ kept: 4 });
  collecting.begin(asked);
});

test("a node whose store is away refuses, and says why", async () => {
  const { state, collecting } = await world();
  state.away = new BlobError("unreachable", "the store is away");
  expect(() => collecting.begin({ at: 1, live: [] })).toThrow("the store is away");
});

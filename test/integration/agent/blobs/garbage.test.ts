import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BlobError } from "../../../../agent/blobs/content/blob-error.ts";
import { keyOf, PERIOD_MS } from "../../../../agent/blobs/content/refs.ts";
import { collectGarbage, type LiveManifest } from "../../../../agent/blobs/garbage.ts";
import { createReader, storeSource } from "../../../../agent/blobs/sources.ts";
import { type Uploaded, uploadTree } from "../../../../agent/blobs/upload.ts";
import { type MemoryBlobStore, memoryBlobStore } from "../../../support/fakes/memory-blob-store.ts";
import { makeTree, uploading } from "./trees.ts";

const { signal } = new AbortController();
/** After this long nothing protects a blob but a reference. */
const LONG = 4 * PERIOD_MS;
let folder: string;
const roots: string[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-garbage-"));
  for (const seed of [1, 2, 3]) {
    const root = join(folder, `tree-${seed}`);
    // All have the first file alike, so they share a blob.
    await makeTree(root, [
      { path: "a", size: 300_000, ranges: [{ at: 0, length: 300_000, seed: 1 }] },
      { path: "b", size: 300_001, ranges: [{ at: 0, length: 300_001, seed }] },
    ]);
    roots.push(root);
  }
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

function world() {
  const store = memoryBlobStore();
  const { clock, deps } = uploading(store);
  const reader = createReader({ sources: [storeSource(store)], codec: deps.codec, now: deps.now });
  const live = (...refs: readonly string[]): LiveManifest[] => refs.map((ref) => ({ ref, reader }));
  const upload = (which: number, bases: readonly Uploaded[] = []) =>
    uploadTree(deps, { root: roots[which] ?? "", kind: "tree", bases: bases.map(({ manifest }) => manifest) }, signal);
  const collect = (refs: readonly string[], dryRun = false) =>
    collectGarbage({ store, now: deps.now }, { live: live(...refs), dryRun }, signal);
  return { store, clock, upload, collect, live, deps };
}

/** Keys of everything that the upload needs. */
const needs = ({ ref, manifest }: Uploaded) => [ref, ...manifest.blobs.map(([blob]) => blob)].map(keyOf);
const missing = (store: MemoryBlobStore, of: Uploaded) => needs(of).filter((key) => !store.objects.has(key));

test("what a live manifest needs stays, shared blobs too, and the rest goes once it is old", async () => {
  const { store, clock, upload, collect } = world();
  const [one, two] = [await upload(0), await upload(1)];
  clock.now += LONG;
  const unneeded = needs(two).filter((key) => !needs(one).includes(key));
  expect(await collect([one.ref])).toMatchObject({ kept: needs(one).length, removed: unneeded.length });
  expect([...store.objects.keys()].toSorted()).toEqual(needs(one).toSorted());
});

test("a blob is kept for three periods without any reference, for the sake of uploads", async () => {
  const { store, clock, upload, collect } = world();
  await upload(0);
  const all = store.objects.size;
  for (let period = 0; period <= 3; period++) {
    expect(await collect([])).toMatchObject({ removed: 0, kept: all });
    clock.now += PERIOD_MS;
  }
  expect(await collect([])).toMatchObject({ removed: all, kept: 0 });
  expect(store.objects.size).toBe(0);
});

test("a dry run counts the same and deletes nothing", async () => {
  const { store, clock, upload, collect } = world();
  await upload(0);
  clock.now += LONG;
  const bytes = [...store.objects.values()].reduce((sum, { length }) => sum + length, 0);
  const counted = await collect([], true);
  expect(counted).toMatchObject({ removed: store.objects.size, removedBytes: bytes });
  expect(await collect([])).toMatchObject({ removed: counted.removed, removedBytes: bytes });
});

test.each([
  { named: "is missing", spoil: (store: MemoryBlobStore, key: string) => store.objects.delete(key), fault: "missing" },
  {
    named: "is damaged",
    spoil: (store: MemoryBlobStore, key: string) => store.objects.set(key, Buffer.from("x")),
    fault: "damaged",
  },
])("nothing is deleted while a live manifest $named", async ({ spoil, fault }) => {
  const { store, clock, upload, collect } = world();
  const [one] = [await upload(0), await upload(1)];
  clock.now += LONG;
  spoil(store, keyOf(one.ref));
  const before = store.objects.size;
  await expect(collect([one.ref])).rejects.toMatchObject({ fault });
  expect(store.objects.size).toBe(before);
});

test("nothing is deleted when a reference is none", async () => {
  const { store, clock, upload, collect } = world();
  await upload(0);
  clock.now += LONG;
  const before = store.objects.size;
  await expect(collect(["../etc"])).rejects.toMatchObject({ fault: "damaged" });
  expect(store.objects.size).toBe(before);
});

test("what is not a blob by its name stays", async () => {
  const { store, clock, upload, collect } = world();
  await upload(0);
  store.objects.set("store", Buffer.from("{}"));
  store.objects.set("sha256/other", Buffer.from("x"));
  clock.now += LONG;
  await collect([]);
  expect([...store.objects.keys()].toSorted()).toEqual(["sha256/other", "store"]);
});

test("what is written while a collector runs is too young for it, however long it hangs", async () => {
  const { store, clock, upload, live, deps } = world();
  const old = await upload(0);
  clock.now += LONG;
  const state: { recorded?: Uploaded } = {};
  async function* slow() {
    yield* live(old.ref);
    // The collector has read its references, and stands still for a day while an upload is recorded.
    state.recorded = await upload(1);
    clock.now += LONG;
  }
  await collectGarbage({ store, now: deps.now }, { live: slow() }, signal);
  expect(missing(store, old)).toEqual([]);
  expect(state.recorded === undefined ? ["nothing was uploaded"] : missing(store, state.recorded)).toEqual([]);
});

test("two collectors at once, one of them cut in the middle, delete only garbage", async () => {
  const { store, clock, upload, collect } = world();
  const [one] = [await upload(0), await upload(1), await upload(2)];
  clock.now += LONG;
  let deletes = 0;
  store.before = (call) => {
    if (call === "delete" && ++deletes === 2) throw new BlobError("unreachable", "the store is away");
  };
  const both = await Promise.allSettled([collect([one.ref]), collect([one.ref])]);
  expect(both.some(({ status }) => status === "rejected")).toBe(true);
  store.before = () => undefined;
  expect(missing(store, one)).toEqual([]);
  await collect([one.ref]);
  expect([...store.objects.keys()].toSorted()).toEqual(needs(one).toSorted());
});

test("whatever uploads, forgotten references and collectors do at whatever times, every reference is whole", async () => {
  // What a fleet does, one call of a store at a time: uploads and collectors stop before each call until they are scheduled.
  const steps = fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.record({ do: fc.constant("upload" as const), tree: fc.nat(2), based: fc.boolean() }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("forget" as const), which: fc.nat(5) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant("collect" as const) }) },
      {
        weight: 3,
        arbitrary: fc.record({
          do: fc.constant("wait" as const),
          periods: fc.double({ min: 0, max: 0.9, noNaN: true }),
        }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("wait" as const), periods: fc.constant(3) }) },
    ),
    { maxLength: 20 },
  );
  await fc.assert(
    fc.asyncProperty(steps, fc.scheduler(), async (plan, scheduler) => {
      const { store, clock, upload, live, deps } = world();
      const recorded = new Map<string, Uploaded>();
      /** References that uploads under way hold. */
      const held = new Map<Uploaded, number>();
      store.before = (call) => scheduler.schedule(Promise.resolve(), call);
      const running: Promise<void>[] = [];

      const start = async (tree: number, base: Uploaded | undefined) => {
        if (base !== undefined) held.set(base, (held.get(base) ?? 0) + 1);
        try {
          const done = await upload(tree, base === undefined ? [] : [base]);
          recorded.set(done.ref, done);
        } catch (error) {
          // The plan may let more time pass than an upload may take: it is refused then.
          if (!(error instanceof BlobError && error.fault === "late")) throw error;
        } finally {
          if (base !== undefined) held.set(base, (held.get(base) ?? 1) - 1);
        }
      };
      const inUse = () => {
        const bases = [...held].filter(([, count]) => count > 0).map(([{ ref }]) => ref);
        return live(...new Set([...recorded.keys(), ...bases]));
      };

      for (const step of plan) {
        if (step.do === "upload") {
          const base = step.based ? [...recorded.values()].at(-1) : undefined;
          running.push(start(step.tree, base));
        } else if (step.do === "forget") recorded.delete([...recorded.keys()][step.which] ?? "");
        else if (step.do === "wait") {
          // Uploads go on for a while, and not all of them to their end.
          if (scheduler.count() > 0) await scheduler.waitOne();
          clock.now += step.periods * PERIOD_MS;
        } else
          running.push(
            collectGarbage({ store, now: deps.now }, { live: inUse() }, signal).then(
              () => undefined,
              (error: unknown) => {
                // A manifest whose reference was forgotten meanwhile may be gone: this collector deletes nothing then.
                if (!(error instanceof BlobError && error.fault === "missing")) throw error;
              },
            ),
          );
      }
      await scheduler.waitFor(Promise.all(running));
      for (const each of recorded.values()) expect(missing(store, each)).toEqual([]);
    }),
    { numRuns: 40 },
  );
}, 240_000);

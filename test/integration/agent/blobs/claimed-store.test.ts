/** Whether the blob store of the settings can be used, with a directory as the store. */

import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { createClaimedStore } from "../../../../agent/blobs/claimed-store.ts";
import { claimStore } from "../../../../agent/blobs/stores/claim.ts";
import { directoryStore } from "../../../../agent/blobs/stores/directory.ts";
import type { BlobStore } from "../../../../agent/blobs/stores/store.ts";
import { openStores } from "../../../../agent/store/stores.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });
const PLATFORM = "11111111-1111-4111-8111-111111111111";

let place: string;
let directory: string;
beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), "svc-claimed-"));
  directory = join(place, "share");
  onTestFinished(() => rm(place, { recursive: true }));
});

/** An agent that looks at the store all the time. Its database outlives it. */
function agent({
  owner = () => PLATFORM,
  store = directoryStore(directory),
  everyMs = 5,
  lookLimitMs = 60_000,
}: {
  readonly owner?: () => string | undefined;
  readonly store?: BlobStore;
  readonly everyMs?: number;
  readonly lookLimitMs?: number;
} = {}) {
  const stores = openStores(join(place, "agent.db"), testSeal);
  const state = { changes: 0 };
  const claimed = createClaimedStore({
    store,
    owner,
    used: stores.blobStores,
    onChange: () => state.changes++,
    log,
    everyMs,
    lookLimitMs,
  });
  const stop = async () => {
    await claimed.stop();
    stores.close();
  };
  onTestFinished(stop);
  claimed.start();
  return { claimed, state, stop };
}

const isUsable = (claimed: ReturnType<typeof agent>["claimed"]) => () => {
  try {
    return claimed.use().name;
  } catch (error) {
    return error;
  }
};

test("a store that is not there is a finding, and is used once it is there", async () => {
  const { claimed, state } = agent();
  await expect.poll(() => claimed.findings()).toHaveLength(1);
  expect(claimed.findings()[0]).toMatchObject({
    id: "blobs.store",
    evidence: expect.stringContaining(`the store ${directory} is not there: is its file system mounted?`) as string,
  });
  expect(() => claimed.use()).toThrow("is not there");
  expect(state.changes).toBe(1);
  await mkdir(directory);
  await expect.poll(isUsable(claimed)).toBe(`the store ${directory}`);
  expect(claimed.findings()).toEqual([]);
  expect(state.changes).toBe(2);
});

test("a new node uses the store soon after it is told the platform's name, and not only at the next round", async () => {
  await mkdir(directory);
  const platform: { name?: string } = {};
  const { claimed } = agent({ owner: () => platform.name, everyMs: 600_000 });
  await expect.poll(isUsable(claimed)).toMatchObject({ message: expect.stringContaining("waits for") as string });
  platform.name = PLATFORM;
  await expect.poll(isUsable(claimed)).toBe(`the store ${directory}`);
});

test("a store that goes away is a finding, and is used again when it is back", async () => {
  await mkdir(directory);
  const { claimed } = agent();
  await expect.poll(isUsable(claimed)).toBe(`the store ${directory}`);
  await rename(directory, `${directory}-away`);
  await expect.poll(() => claimed.findings()).toHaveLength(1);
  expect(() => claimed.use()).toThrow("is not there");
  await rename(`${directory}-away`, directory);
  await expect.poll(() => claimed.findings()).toEqual([]);
});

test("a store that takes requests and answers none is a finding soon, and is used again when it answers", async () => {
  await mkdir(directory);
  const own = directoryStore(directory);
  const state = { stands: true };
  const never = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
  const store: BlobStore = {
    ...own,
    get: (key, signal, range) => (state.stands ? never(signal) : own.get(key, signal, range)),
  };
  const { claimed } = agent({ store, lookLimitMs: 50 });
  await expect.poll(() => claimed.findings()).toHaveLength(1);
  expect(claimed.findings()[0]?.evidence).toBe(`the store ${directory} has not answered for 0.05 s`);
  expect(() => claimed.use()).toThrow("has not answered");
  state.stands = false;
  await expect.poll(isUsable(claimed)).toBe(`the store ${directory}`);
  expect(claimed.findings()).toEqual([]);
});

test("a store of another platform is refused, and its finding names the way out", async () => {
  await mkdir(directory);
  await claimStore(directoryStore(directory), { owner: "another", usedBefore: false }, new AbortController().signal);
  const { claimed } = agent();
  await expect.poll(() => claimed.findings()).toHaveLength(1);
  expect(claimed.findings()[0]).toMatchObject({
    evidence: expect.stringContaining("belongs to another platform, another") as string,
    wayOut: expect.stringContaining("give each platform a place of its own (SVC_BLOB_STORE)") as string,
  });
});

test("an empty directory where the node had a store is refused, also by the next agent", async () => {
  await mkdir(directory);
  const first = agent();
  await expect.poll(isUsable(first.claimed)).toBe(`the store ${directory}`);
  await first.stop();
  await rm(directory, { recursive: true });
  await mkdir(directory);
  const { claimed } = agent();
  await expect.poll(() => claimed.findings()).toHaveLength(1);
  expect(claimed.findings()[0]?.evidence).toContain("is empty, and was not before: is its share mounted?");
});

test("a node that serves no platform yet neither claims the store nor complains", async () => {
  await mkdir(directory);
  const platform = { id: undefined as string | undefined };
  const { claimed } = agent({ owner: () => platform.id });
  await expect.poll(isUsable(claimed)).toMatchObject({
    message: expect.stringContaining("waits for the platform") as string,
  });
  expect(claimed.findings()).toEqual([]);
  // Nothing was claimed: the store can still become that of another platform.
  await writeFile(join(directory, "store"), JSON.stringify({ format: 1, owner: PLATFORM }));
  platform.id = PLATFORM;
  await expect.poll(isUsable(claimed)).toBe(`the store ${directory}`);
});

test("a node without a store has no finding, and says which setting gives it one", () => {
  const stores = openStores(":memory:", testSeal);
  onTestFinished(() => stores.close());
  const claimed = createClaimedStore({
    store: undefined,
    owner: () => PLATFORM,
    used: stores.blobStores,
    onChange: () => undefined,
    log,
  });
  claimed.start();
  expect(claimed.findings()).toEqual([]);
  expect(() => claimed.use()).toThrow("this node has no blob store (SVC_BLOB_STORE)");
});

/** Frozen containers of paused sandboxes, and which of them can be dropped. */

import { expect, onTestFinished, test } from "vitest";
import type { LiveContainer } from "../../../../agent/containers/live-container.ts";
import { createFrozenContainers } from "../../../../agent/snapshots/frozen/frozen.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { gateway } from "../../../support/runner/promises.ts";

test("a frozen container is dropped on request unless it was resumed or holds state that is not stored", async () => {
  const evicted: string[] = [];
  let time = 0;
  const frozen = createFrozenContainers({
    evict: ({ id }) => Promise.resolve(void evicted.push(id)),
    keepMs: 1_000,
    freeMemory: () => 1,
    reservedMemory: 0,
    now: () => time++,
    log: createLog({ component: "test", level: "silent" }),
  });
  onTestFinished(() => frozen.stop());
  const container = (id: string) => ({ id }) as LiveContainer;
  frozen.add("s1", container("stored"));
  frozen.add("s2", container("newest state"), true);
  frozen.add("s3", container("resumed"));
  expect(frozen.kept()).toEqual([
    { id: "s1", ran: false },
    { id: "s2", ran: true },
    { id: "s3", ran: false },
  ]);
  frozen.take("s3");
  for (const id of ["s1", "s2", "s3"]) await frozen.dropStored(id);
  expect(evicted).toEqual(["stored"]);
  expect(frozen.ids()).toEqual(["newest state"]);
});

test("a frozen container whose disk is being read is dropped only after that, also when its time is over", async () => {
  const evicted: string[] = [];
  const frozen = createFrozenContainers({
    evict: ({ id }) => Promise.resolve(void evicted.push(id)),
    keepMs: 0,
    freeMemory: () => 1,
    reservedMemory: 2,
    now: () => Date.now(),
    log: createLog({ component: "test", level: "silent" }),
  });
  onTestFinished(() => frozen.stop());
  const releases = [await frozen.hold("s1", "read"), await frozen.hold("s1", "read")];
  frozen.add("s1", { id: "read" } as LiveContainer);
  frozen.add("s2", { id: "not read" } as LiveContainer);
  await expect.poll(() => evicted).toEqual(["not read"]);
  await frozen.dropStored("s1");
  releases[0]?.();
  releases[0]?.();
  await frozen.dropStored("s1");
  expect(evicted).toEqual(["not read"]);
  releases[1]?.();
  await expect.poll(() => evicted).toEqual(["not read", "read"]);
});

test("a drop that has failed is tried again only when nothing reads the disk", async () => {
  const evicted: string[] = [];
  const docker = { isAway: true };
  const frozen = createFrozenContainers({
    evict: ({ id }) =>
      docker.isAway ? Promise.reject(new Error("Docker is away")) : Promise.resolve(void evicted.push(id)),
    keepMs: 0,
    freeMemory: () => 1,
    reservedMemory: 0,
    now: () => Date.now(),
    log: createLog({ component: "test", level: "silent" }),
  });
  onTestFinished(() => frozen.stop());
  await expect(frozen.drop({ id: "read" } as LiveContainer)).rejects.toThrow("Docker is away");
  docker.isAway = false;
  const release = await frozen.hold("s1", "read");
  // Dropped by the round that would also try the other one again.
  frozen.add("s2", { id: "not read" } as LiveContainer);
  await expect.poll(() => evicted).toEqual(["not read"]);
  release();
  await expect.poll(() => evicted).toEqual(["not read", "read"]);
});

test("a container that cannot be dropped does not keep others from being dropped", async () => {
  const evicted: string[] = [];
  const frozen = createFrozenContainers({
    evict: ({ id }) =>
      id === "stuck" ? Promise.reject(new Error("it does not stop")) : Promise.resolve(void evicted.push(id)),
    keepMs: 0,
    freeMemory: () => 1,
    reservedMemory: 0,
    now: () => Date.now(),
    log: createLog({ component: "test", level: "silent" }),
  });
  onTestFinished(() => frozen.stop());
  await expect(frozen.drop({ id: "stuck" } as LiveContainer)).rejects.toThrow("it does not stop");
  frozen.add("s1", { id: "other" } as LiveContainer);
  await expect.poll(() => evicted).toEqual(["other"]);
});

test("a container that is not to be kept frozen is dropped at once, or once nothing reads its disk", async () => {
  const evicted: string[] = [];
  const frozen = createFrozenContainers({
    evict: ({ id }) => Promise.resolve(void evicted.push(id)),
    keepMs: 3_600_000,
    freeMemory: () => 1,
    reservedMemory: 0,
    now: () => Date.now(),
    log: createLog({ component: "test", level: "silent" }),
  });
  onTestFinished(() => frozen.stop());
  const release = await frozen.hold("s1", "read");
  frozen.discard("s1", { id: "read" } as LiveContainer);
  frozen.discard("s2", { id: "not read" } as LiveContainer);
  await expect.poll(() => evicted).toEqual(["not read"]);
  expect(frozen.ids()).toEqual(["read"]);
  release();
  await expect.poll(() => evicted).toEqual(["not read", "read"]);
});

test("a hold begins when the drop under way is over", async () => {
  const dropping = gateway();
  const frozen = createFrozenContainers({
    evict: () => dropping.promise,
    keepMs: 1_000,
    freeMemory: () => 1,
    reservedMemory: 0,
    now: () => Date.now(),
    log: createLog({ component: "test", level: "silent" }),
  });
  onTestFinished(() => frozen.stop());
  const drop = frozen.drop({ id: "going" } as LiveContainer);
  let isHeld = false;
  const hold = frozen.hold("s1", "going").then(() => void (isHeld = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(isHeld).toBe(false);
  dropping.resolve();
  await Promise.all([drop, hold]);
  expect(isHeld).toBe(true);
});

/** A node that can neither store nor restore memory: what it refuses, and that nothing is lost by it. */

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { endExpired } from "../../../../agent/snapshots/take/end-expired.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { again, machineForEach, snapshotRequest } from "../machine.ts";

const machine = machineForEach();
const refusal = () => new AppError("memory_snapshots_unavailable", "CRIU is not installed; use memory: false");
const refused = { code: "memory_snapshots_unavailable" };

test("a pause and a checkpoint with memory are refused, and the sandbox runs on; without memory they work", async () => {
  await machine.takeOver({ memoryRefusal: refusal });
  const one = await machine.running();
  const { taker } = machine.parts;
  await expect(taker.checkpoint(one.executionId, snapshotRequest())).rejects.toMatchObject(refused);
  await expect(taker.pause(one.executionId, snapshotRequest())).rejects.toMatchObject(refused);
  machine.expectRunning();
  expect(machine.parts.stores.snapshots.all()).toEqual([]);
  const disk = { snapshotId: randomUUID(), memory: false };
  expect(await taker.pause(one.executionId, disk)).toMatchObject({ memory: false });
});

test("a sandbox whose time is over without the orchestrator is paused with its disk only", async () => {
  await machine.takeOver({ memoryRefusal: refusal });
  const one = await machine.running({ onTimeout: "pause" });
  const { sandboxes, taker } = machine.parts;
  await endExpired(one.executionId, { sandboxes, taker, log: createLog({ component: "test", level: "silent" }) });
  expect(machine.parts.stores.snapshots.all()).toMatchObject([{ state: "stored", memory: false }]);
});

test("a resume of an earlier snapshot with memory is refused and keeps it; once memory works again it is resumed", async () => {
  // A frozen container would be thawed, which needs no CRIU.
  await machine.takeOver({ frozenSeconds: 0 });
  const one = await machine.running();
  const stored = snapshotRequest();
  await machine.parts.taker.pause(one.executionId, stored);
  await expect.poll(() => [...machine.engine.containers.values()].some(({ running }) => running)).toBe(false);
  await machine.takeOver({ memoryRefusal: refusal, frozenSeconds: 0 });
  const start = () => machine.parts.sandboxes.start(randomUUID(), again(one, stored.snapshotId));
  await expect(start()).rejects.toMatchObject(refused);
  expect(machine.parts.stores.snapshots.get(stored.snapshotId)).toMatchObject({ state: "stored", memory: true });
  await machine.takeOver();
  expect(await start()).toMatchObject({ restored: "memory" });
});

test("large memory is restored as a whole on a node whose kernel restores no pages later", async () => {
  const large = { frozenSeconds: 0, lazyPagesMb: 0 };
  await machine.takeOver(large);
  const one = await machine.running();
  const stored = snapshotRequest();
  await machine.parts.taker.pause(one.executionId, stored);
  await expect.poll(() => [...machine.engine.containers.values()].some(({ running }) => running)).toBe(false);
  const start = () => machine.parts.sandboxes.start(randomUUID(), again(one, stored.snapshotId));
  // The machine of the tests has no server of pages, so a lazy restore is seen by its failure.
  await expect(start()).rejects.toThrow("nothing is large here");
  await machine.takeOver({ ...large, lazyPages: false });
  expect(await start()).toMatchObject({ restored: "memory" });
});

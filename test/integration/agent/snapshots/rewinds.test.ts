/** Rewinds that succeed, fail or are cut off at every step: the sandbox runs once, from the snapshot or as before. */

import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { StartRequest } from "../../../../shared/agent-api/routes.ts";
import { newSandboxId } from "../../../../shared/ids.ts";
import { machineForEach, type Running, snapshotRequest } from "../machine.ts";

const here = machineForEach();
const { running, takeOver, vanishAt } = here;

/** A sandbox that runs, and a snapshot of it. */
async function withSnapshot() {
  const made = await running({ record: RECORD });
  const { record, ...body } = made.body;
  expect(record).toBe(RECORD);
  // A request for a rewind has none.
  const sandbox: Running = { ...made, body };
  const { snapshotId } = await here.parts.taker.checkpoint(sandbox.executionId, snapshotRequest());
  return { sandbox, snapshotId };
}

/** The orchestrator's row, which a rewind keeps. */
const RECORD = "a row";

const rewound = ({ body }: Running, snapshotId: string, replaces?: string): StartRequest => ({
  ...body,
  origin: { is: "rewind", snapshotId, memory: true, ...(replaces === undefined ? {} : { replaces }) },
});

const runs = () => here.parts.sandboxes.running().map(({ executionId }) => executionId);
const open = () => [...here.engine.firewall.values()].filter((one) => one.open);
const awake = () => [...here.engine.containers.values()].filter((one) => one.running && !one.frozen);

/** This execution alone runs, with the only container that is not frozen, and the only open network. */
async function expectOnly(executionId: string) {
  expect(runs()).toEqual([executionId]);
  await here.parts.settled();
  expect(awake()).toHaveLength(1);
  expect(open()).toHaveLength(1);
  const executions = here.parts.stores.executions.all();
  expect(executions.map(({ id, running: is, record }) => [id, is, record])).toEqual([[executionId, true, RECORD]]);
  await expect.poll(() => here.engine.containers.size).toBe(1);
  expect(here.parts.stores.containers.all()).toHaveLength(1);
}

const STEPS = [
  "create",
  "freeze",
  "annotations",
  "memory annotations",
  "start",
  "inspect",
  "ready",
  "verify",
  "init",
  "open",
];

describe("a rewind of a running sandbox", () => {
  test("ends the former execution when the new one runs from the snapshot", async () => {
    const { sandbox, snapshotId } = await withSnapshot();
    const executionId = randomUUID();
    const started = await here.parts.sandboxes.start(executionId, rewound(sandbox, snapshotId, sandbox.executionId));
    expect(started).toMatchObject({ executionId, restored: "memory" });
    expect(here.parts.told).toContain(`close ${sandbox.executionId}`);
    expect(here.parts.stores.executions.wasStopped(sandbox.executionId)).toBe(true);
    expect(here.parts.stores.executions.exits()).toEqual([]);
    await expectOnly(executionId);
    // The snapshot is there for the next rewind.
    const next = randomUUID();
    await here.parts.sandboxes.start(next, rewound(sandbox, snapshotId, executionId));
    await expectOnly(next);
  });

  test("asked for twice is one start", async () => {
    const { sandbox, snapshotId } = await withSnapshot();
    const executionId = randomUUID();
    const body = rewound(sandbox, snapshotId, sandbox.executionId);
    const [one, two] = await Promise.all([1, 2].map(() => here.parts.sandboxes.start(executionId, body)));
    expect(one).toEqual(two);
    expect(await here.parts.sandboxes.start(executionId, body)).toEqual(one);
    await expectOnly(executionId);
  });

  test.each(STEPS)("that fails at %s leaves it as it was", async (step) => {
    const { sandbox, snapshotId } = await withSnapshot();
    // Once: what lets the former execution go on takes some of the same steps.
    const left = new Set([step]);
    here.engine.fail((name) => {
      if (left.delete(name)) throw new Error("injected");
    });
    const body = rewound(sandbox, snapshotId, sandbox.executionId);
    await expect(here.parts.sandboxes.start(randomUUID(), body)).rejects.toThrow();
    here.engine.fail(() => undefined);
    await expectOnly(sandbox.executionId);
    const executionId = randomUUID();
    await here.parts.sandboxes.start(executionId, body);
    await expectOnly(executionId);
  });

  // `verify` runs beside the other steps: an agent that is cut off in it is cut off at one of those.
  test.each([...STEPS.filter((step) => step !== "verify"), "signal"])(
    "in which the agent is killed at %s leaves one of the two, and the next request ends with the new one",
    async (step) => {
      const { sandbox, snapshotId } = await withSnapshot();
      const executionId = randomUUID();
      const body = rewound(sandbox, snapshotId, sandbox.executionId);
      const vanished = vanishAt(step);
      void here.parts.sandboxes.start(executionId, body).catch(() => undefined);
      await vanished;
      await takeOver();
      // The former one is killed when the new one is recorded.
      await expectOnly(step === "signal" ? executionId : sandbox.executionId);
      await here.parts.sandboxes.start(executionId, body);
      await expectOnly(executionId);
    },
  );

  test.each(["start", "ready", "init"])("that is stopped at %s leaves it as it was", async (step) => {
    const { sandbox, snapshotId } = await withSnapshot();
    const executionId = randomUUID();
    const body = rewound(sandbox, snapshotId, sandbox.executionId);
    const stops: Promise<void>[] = [];
    here.engine.fail((name) => {
      if (name === step && stops.length === 0) stops.push(here.parts.sandboxes.stop(executionId));
    });
    await expect(here.parts.sandboxes.start(executionId, body)).rejects.toThrow();
    await Promise.all(stops);
    await expectOnly(sandbox.executionId);
    await expect(here.parts.sandboxes.start(executionId, body)).rejects.toMatchObject({ code: "conflict" });
  });

  test("is refused for an execution that does not run, and for one of another sandbox", async () => {
    const { sandbox, snapshotId } = await withSnapshot();
    const gone = rewound(sandbox, snapshotId, randomUUID());
    await expect(here.parts.sandboxes.start(randomUUID(), gone)).rejects.toMatchObject({ code: "conflict" });
    const foreign = { ...rewound(sandbox, snapshotId, sandbox.executionId), sandboxId: newSandboxId() };
    await expect(here.parts.sandboxes.start(randomUUID(), foreign)).rejects.toMatchObject({ code: "conflict" });
    await expectOnly(sandbox.executionId);
  });
});

describe("a rewind of a paused sandbox", () => {
  test("starts beside what it was paused with, which stays until it is deleted", async () => {
    const { sandbox, snapshotId } = await withSnapshot();
    const paused = await here.parts.taker.pause(sandbox.executionId, snapshotRequest());
    const executionId = randomUUID();
    await here.parts.sandboxes.start(executionId, rewound(sandbox, snapshotId));
    expect(runs()).toEqual([executionId]);
    expect(
      here.parts.snapshots
        .list()
        .map((one) => one.snapshotId)
        .sort(),
    ).toEqual([paused.snapshotId, snapshotId].sort());
    await here.parts.snapshots.delete(paused.snapshotId);
    await expectOnly(executionId);
  });
});

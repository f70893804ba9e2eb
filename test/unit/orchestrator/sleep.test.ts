/**
 * Pause, resume, copies, kills, ends, exits, faults of the node and deaths of the process, in any order and interleaving:
 * at most one live execution, no lost kill, every waiter gets an answer, no route to what does not run, and no snapshot
 * lost that a paused sandbox needs.
 */

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AppError } from "../../../shared/errors.ts";
import { ID, type Operation, type SleepWorld, sleepWorld } from "./sleep-world.ts";

const operation = fc.constantFrom<Operation>(
  "pause",
  "pause",
  "pause disk",
  "connect",
  "connect",
  "reboot",
  "snapshot",
  "expire",
  "kill",
  "exit",
  "crash",
  "refuse",
  "silent before",
  "silent after",
);
const peaceful = fc.constantFrom<Operation>("pause", "connect", "reboot", "snapshot", "pause disk", "expire");

interface Ran {
  readonly w: SleepWorld;
  readonly killed: boolean;
}

async function run(scheduler: fc.Scheduler, operations: readonly Operation[]): Promise<Ran> {
  const step = () => scheduler.schedule(Promise.resolve());
  const w = await sleepWorld(step);
  const answers = operations.map(async (each) => {
    await step();
    return { each, result: await w.perform(each) };
  });
  const settled = await watched(Promise.allSettled(answers), scheduler, w);
  for (const answer of settled) {
    // Refused, with a reason: never an accident.
    if (answer.status === "rejected") {
      expect(answer.reason).toBeInstanceOf(AppError);
      expect((answer.reason as AppError).code).not.toBe("internal");
    }
  }
  const killed = settled.some(
    (answer) => answer.status === "fulfilled" && answer.value.each === "kill" && answer.value.result === true,
  );
  await watched(w.settle(), scheduler, w);
  return { w, killed };
}

/** Lets one thing happen after the other until `work` is done, and looks between them. */
async function watched<T>(work: Promise<T>, scheduler: fc.Scheduler, w: SleepWorld): Promise<T> {
  const progress = { done: false };
  const note = () => {
    progress.done = true;
  };
  work.then(note, note);
  while (!progress.done) {
    if (scheduler.count() > 0) await scheduler.waitOne();
    else await new Promise((resolve) => setImmediate(resolve));
    expect(w.live.size, "live executions").toBeLessThanOrEqual(1);
  }
  return work;
}

async function check({ w, killed }: Ran): Promise<void> {
  const record = await w.store.sandboxes.get(ID);
  const state = record?.state;
  expect(["running", "paused", "gone"]).toContain(state);
  if (killed) expect(state).toBe("gone");
  const own = state === "running" ? record?.executionId : undefined;
  expect([...w.live.keys()]).toEqual(own === undefined ? [] : [own]);
  expect(w.routes().lookup(ID)?.executionId).toBe(own);
  if (state === "paused") expect([...w.snapshots.keys()]).toContain(record?.snapshot?.id);
  if (state !== "gone") expect(record?.capture).toBeUndefined();
  // What is stored is needed, or is on its way out.
  const strays = await w.strays();
  const needed = state === "gone" ? [] : [record?.snapshot?.id];
  for (const id of w.snapshots.keys()) expect(strays.includes(id) || needed.includes(id), id).toBe(true);
  const events = await w.store.events.list(record?.projectId ?? "", { offset: 0, limit: 100, ascending: true });
  expect(events.filter(({ type }) => type.endsWith("killed")).length).toBe(state === "gone" ? 1 : 0);
}

describe("random interleavings", () => {
  test("with faults and deaths", async () => {
    const operations = fc.array(operation, { minLength: 1, maxLength: 9 });
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), operations, async (scheduler, list) => {
        const ran = await run(scheduler, list);
        try {
          await check(ran);
        } finally {
          await ran.w.close();
        }
      }),
      { numRuns: Number(process.env.SVC_TEST_RUNS ?? 120) },
    );
  }, 60_000);

  test("without any: nothing is ever lost", async () => {
    const operations = fc.array(peaceful, { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), operations, async (scheduler, list) => {
        const ran = await run(scheduler, list);
        try {
          await check(ran);
          expect((await ran.w.store.sandboxes.get(ID))?.state).not.toBe("gone");
        } finally {
          await ran.w.close();
        }
      }),
      { numRuns: Number(process.env.SVC_TEST_RUNS ?? 60) },
    );
  }, 60_000);
});

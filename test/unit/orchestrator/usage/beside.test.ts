/** Two orchestrators that a node reports to in turn: what its executions use is counted once. */

import { expect, onTestFinished, test } from "vitest";
import { createMeter } from "../../../../orchestrator/usage/meter.ts";
import { toSeries } from "../../../../orchestrator/usage/series.ts";
import { openWorld } from "../store/storage-world.ts";

/** A multiple of every step. */
const T = 1_800_000_000;

async function two() {
  const { opened, project, store } = await openWorld(() => T * 1000);
  onTestFinished(() => opened.close());
  const { usage } = store;
  const clock = { seconds: 0 };
  const now = () => (T + clock.seconds) * 1000;
  const one = () => {
    const meter = createMeter(now);
    return {
      heard(cpuMs: number, memoryBytes = 0) {
        const use = { cpuMs, memoryBytes, diskBytes: 0, sentBytes: 0, receivedBytes: 0 };
        const live = { executionId: "e", sandboxId: "i", address: "10.0.0.2", startedAt: 0, endAt: 0, use };
        meter.heard([live], [{ id: "i", executionId: "e", projectId: project.id }]);
      },
      flush: () => meter.flush((heard) => usage.add({ at: T + clock.seconds, began: T, missed: [], heard })),
    };
  };
  const series = async (length: number, end: number) => {
    const range = { start: end - length, end };
    return toSeries(await usage.samples(project.id, 5, range), await usage.spans(range), { ...range, step: 5 });
  };
  const total = async () => (await series(300, T + 300)).reduce((all, { cpuMs }) => all + cpuMs, 0);
  return { clock, a: one(), b: one(), series, total };
}

test("what a node has told two orchestrators is counted once, whichever of them tells the database first", async () => {
  const { clock, a, b, total } = await two();
  for (const [at, by, cpuMs] of [
    [0, a, 100],
    [1, b, 130],
    [2, a, 160],
  ] as const) {
    clock.seconds = at;
    by.heard(cpuMs);
  }
  clock.seconds = 5;
  await b.flush();
  await a.flush();
  expect(await total()).toBe(160);
  // The older report comes to the database after the newer one.
  clock.seconds = 6;
  a.heard(170);
  clock.seconds = 7;
  b.heard(200);
  clock.seconds = 10;
  await b.flush();
  await a.flush();
  expect(await total()).toBe(200);
  clock.seconds = 12;
  a.heard(210);
  clock.seconds = 15;
  await a.flush();
  expect(await total()).toBe(210);
});

test("what one orchestrator has told the database is not counted again by another one, which hears of the execution later", async () => {
  const { clock, a, b, total, series } = await two();
  a.heard(500, 7);
  await a.flush();
  clock.seconds = 30;
  b.heard(520, 9);
  await b.flush();
  expect(await total()).toBe(520);
  expect((await series(5, T + 35)).map(({ memoryBytes }) => memoryBytes)).toEqual([9]);
});

test("a counter that has become smaller at another orchestrator has begun again", async () => {
  const { clock, a, b, total } = await two();
  a.heard(500);
  await a.flush();
  clock.seconds = 5;
  b.heard(40);
  await b.flush();
  expect(await total()).toBe(540);
});

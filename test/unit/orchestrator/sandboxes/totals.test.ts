/** The totals of a list: which pages count, and which repeat a count. */

import { expect, test } from "vitest";
import { createTotals } from "../../../../orchestrator/sandboxes/totals.ts";
import type { SandboxFilter } from "../../../../orchestrator/store/sandboxes/filter.ts";

function newTotals() {
  const state = { now: 1_000_000, counted: 0 };
  const totals = createTotals({
    count: () => Promise.resolve(new Map([["running" as const, ++state.counted]])),
    now: () => state.now,
  });
  const running = async (filter: SandboxFilter, isFirst: boolean) => (await totals.of(filter, isFirst)).get("running");
  return { state, running };
}

const FILTER: SandboxFilter = { projectId: "p1", states: ["running"], endedSince: 5 };

test("the pages behind the first one repeat its totals, and count again after five seconds", async () => {
  const { state, running } = newTotals();
  expect(await running(FILTER, true)).toBe(1);
  state.now += 4_999;
  expect(await running({ ...FILTER, endedSince: 6 }, false)).toBe(1);
  state.now += 1;
  expect(await running(FILTER, false)).toBe(2);
});

test("a first page always counts, and the pages behind it repeat the newest count", async () => {
  const { running } = newTotals();
  expect(await running(FILTER, true)).toBe(1);
  expect(await running(FILTER, true)).toBe(2);
  expect(await running(FILTER, false)).toBe(2);
});

test("a clock that was set back ends the repetition", async () => {
  const { state, running } = newTotals();
  await running(FILTER, true);
  state.now -= 1;
  expect(await running(FILTER, false)).toBe(2);
});

test.each<[string, SandboxFilter]>([
  ["project", { ...FILTER, projectId: "p2" }],
  ["states", { ...FILTER, states: ["running", "paused"] }],
  ["template", { ...FILTER, templateId: "t1" }],
  ["start", { ...FILTER, startedAfter: 7 }],
  ["metadata", { ...FILTER, metadata: new Map([["a", "b"]]) }],
  ["resumed ones", { ...FILTER, resuming: true }],
])("a list with another %s has totals of its own", async (_name, other) => {
  const { running } = newTotals();
  await running(FILTER, true);
  expect(await running(other, false)).toBe(2);
});

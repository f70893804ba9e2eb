import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Arrivals } from "../../../../../orchestrator/edge/moves/arrivals.ts";
import type { EdgeRoute, Whereabouts } from "../../../../../orchestrator/edge/sandbox-lookup.ts";

const MOVING: Whereabouts = { is: "paused", moving: true };
const RUNNING: Whereabouts = { is: "running", route: { executionId: "e2" } as EdgeRoute };

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

/** Sees one of these at each look, and the last one again and again. */
function looking(...seen: readonly Whereabouts[]) {
  const state = { looks: 0, onLook: () => undefined as void };
  const arrivals = new Arrivals(() => {
    state.onLook();
    return Promise.resolve(seen[Math.min(state.looks++, seen.length - 1)] ?? MOVING);
  }, 1_000);
  return { arrivals, state };
}

test.each<readonly [string, Whereabouts]>([
  ["runs", RUNNING],
  ["stays paused", { is: "paused", moving: false }],
  ["is gone", { is: "not_found" }],
])("a wait ends when the sandbox %s", async (_what, last) => {
  const { arrivals, state } = looking(MOVING, { is: "transitioning" }, last);
  expect([await arrivals.arrived("i1"), state.looks]).toEqual([last, 3]);
});

test("a wait ends at its limit, while the sandbox is still on its way", async () => {
  const { arrivals, state } = looking(MOVING);
  state.onLook = () => void vi.advanceTimersByTime(500);
  expect([await arrivals.arrived("i1"), state.looks]).toEqual([MOVING, 2]);
});

test("all that wait for a sandbox share its looks, and the next one looks again", async () => {
  const { arrivals, state } = looking(MOVING, RUNNING);
  const all = await Promise.all([arrivals.arrived("i1"), arrivals.arrived("i1"), arrivals.arrived("i1")]);
  expect([all, state.looks]).toEqual([[RUNNING, RUNNING, RUNNING], 2]);
  await arrivals.arrived("i1");
  expect(state.looks).toBe(3);
});

test("a wait fails with its look, and the next one looks again", async () => {
  let fails = true;
  const arrivals = new Arrivals(() => (fails ? Promise.reject(new Error("away")) : Promise.resolve(RUNNING)));
  await expect(arrivals.arrived("i1")).rejects.toThrow("away");
  fails = false;
  expect(await arrivals.arrived("i1")).toEqual(RUNNING);
});

test("an edge that stops ends every wait", async () => {
  const { arrivals, state } = looking(MOVING);
  const waiting = arrivals.arrived("i1");
  await vi.waitFor(() => expect(state.looks).toBeGreaterThan(0));
  arrivals.stop();
  expect(await waiting).toEqual(MOVING);
});

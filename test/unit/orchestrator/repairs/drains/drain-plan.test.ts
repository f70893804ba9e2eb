import { array, assert, constant, constantFrom, integer, nat, oneof, property, record } from "fast-check";
import { describe, expect, test } from "vitest";
import {
  afterRefusal,
  BETWEEN_MS,
  type DrainSides,
  drainState,
  planDrain,
  RETURN_MS,
  SETTLE_MS,
  STAYS_MS,
  whyWaiting,
} from "../../../../../orchestrator/repairs/drains/drain-plan.ts";

const NOW = 1_000_000;
const drain: DrainSides["drain"] = {
  endedAt: undefined,
  deadlineAt: undefined,
  running: "move",
  atDeadline: "stay",
  atOnce: 10,
};
type Move = DrainSides["moves"][number];
const sides = (more: Partial<DrainSides> = {}): DrainSides => ({
  drain,
  here: [],
  moves: [],
  working: new Set(),
  now: NOW,
  ...more,
});
const moved = (sandboxId: string, state: Move["state"], at = 0): Move => ({ sandboxId, was: "running", state, at });
const [running, paused] = [
  { id: "r", state: "running" as const },
  { id: "p", state: "paused" as const },
];

describe("a drain", () => {
  test.each([
    { named: "moves what runs, then carries what is paused", more: {}, steps: ["r move", "p carry"] },
    { named: "leaves what runs alone where it may finish", more: { running: "finish" }, steps: ["p carry"] },
    { named: "begins nothing more after its deadline", more: { deadlineAt: NOW }, steps: [] },
    { named: "ends what still runs at its deadline", more: { deadlineAt: NOW, atDeadline: "kill" }, steps: ["r kill"] },
    {
      named: "ends nothing before its deadline",
      more: { deadlineAt: NOW + 1, atDeadline: "kill" },
      steps: ["r move", "p carry"],
    },
    {
      named: "begins nothing when the node was taken back",
      more: { endedAt: NOW, atDeadline: "kill", deadlineAt: 0 },
      steps: [],
    },
    { named: "has no more under way than it may", more: { atOnce: 1 }, steps: ["r move"] },
  ] as const)("$named", ({ more, steps }) => {
    const plan = planDrain(sides({ drain: { ...drain, ...more }, here: [paused, running] }));
    expect(plan.map(({ sandboxId, do: what }) => `${sandboxId} ${what}`)).toEqual(steps);
  });

  test("goes on with what is between two nodes, also when the node was taken back, before anything else", () => {
    const moves = [moved("x", "moving")];
    const here = [running, { id: "x", state: "paused" as const }];
    expect(planDrain(sides({ here, moves, drain: { ...drain, atOnce: 1 } }))).toEqual([{ sandboxId: "x", do: "goOn" }]);
    expect(planDrain(sides({ here, moves, drain: { ...drain, endedAt: NOW } }))).toEqual([
      { sandboxId: "x", do: "goOn" },
    ]);
    expect(planDrain(sides({ moves, working: new Set(["x"]) }))).toEqual([]);
    expect(planDrain(sides({ moves: [moved("x", "moving", NOW - BETWEEN_MS + 1)] }))).toEqual([]);
  });

  test("tries what stays again after a while", () => {
    const plan = (at: number) => planDrain(sides({ here: [running], moves: [moved("r", "stays", at)] }));
    expect(plan(NOW - STAYS_MS + 1)).toEqual([]);
    expect(plan(NOW - STAYS_MS)).toEqual([{ sandboxId: "r", do: "move" }]);
  });

  test("ends what it could not end at its deadline after a moment, and at once what it could not move before", () => {
    const late = { ...drain, deadlineAt: NOW - 10 * BETWEEN_MS, atDeadline: "kill" as const };
    const plan = (at: number, more = late) =>
      planDrain(sides({ here: [running], moves: [moved("r", "stays", at)], drain: more }));
    expect(plan(NOW)).toEqual([]);
    expect(plan(NOW - BETWEEN_MS + 1)).toEqual([]);
    expect(plan(NOW - BETWEEN_MS)).toEqual([{ sandboxId: "r", do: "kill" }]);
    expect(plan(NOW - 1, { ...late, deadlineAt: NOW })).toEqual([{ sandboxId: "r", do: "kill" }]);
  });

  test.each([
    { stallMs: 1_000, restMs: STAYS_MS },
    { stallMs: 10_000, restMs: 200_000 },
    { stallMs: 90_000, restMs: 600_000 },
  ])("leaves a sandbox that stood still for $stallMs ms in vain alone for $restMs ms", ({ stallMs, restMs }) => {
    const plan = (at: number) =>
      planDrain(sides({ here: [running], moves: [{ ...moved("r", "stays", at), stallMs }] }));
    expect(plan(NOW - restMs + 1)).toEqual([]);
    expect(plan(NOW - restMs)).toEqual([{ sandboxId: "r", do: "move" }]);
  });

  test("is done when nothing runs there and what is paused is in the store", () => {
    const state = (more: Partial<DrainSides>) => drainState(sides(more));
    expect(state({})).toBe("done");
    expect(state({ here: [paused] })).toBe("draining");
    expect(state({ here: [paused], moves: [moved("p", "stored")] })).toBe("done");
    expect(state({ here: [running], moves: [moved("r", "stored")] })).toBe("draining");
    expect(state({ moves: [moved("x", "moving")] })).toBe("draining");
    expect(state({ here: [running], drain: { ...drain, deadlineAt: NOW } })).toBe("overdue");
    expect(state({ drain: { ...drain, endedAt: NOW } })).toBe("stopped");
  });
});

test.each([
  { code: "snapshot_incompatible", mayReturn: true, refusedForMs: 0, next: "return" },
  { code: "snapshot_incompatible", mayReturn: false, refusedForMs: 0, next: "settle" },
  { code: "node_busy", mayReturn: true, refusedForMs: RETURN_MS - 1, next: "later" },
  { code: "node_busy", mayReturn: true, refusedForMs: RETURN_MS, next: "return" },
  { code: "node_busy", mayReturn: false, refusedForMs: SETTLE_MS - 1, next: "later" },
  { code: "node_busy", mayReturn: false, refusedForMs: SETTLE_MS, next: "settle" },
] as const)(
  "after $code for $refusedForMs ms, where a way back is $mayReturn, a sandbox that stands still: $next",
  ({ next, ...refusal }) => {
    expect(afterRefusal(refusal)).toBe(next);
  },
);

test.each([
  { state: "running", more: {}, reason: "its turn comes: 10 are moved at a time" },
  { state: "paused", more: {}, reason: "its turn comes: 10 are moved at a time" },
  { state: "snapshotting", more: {}, reason: "it is snapshotting: its turn comes after that" },
  { state: "running", more: { running: "finish" }, reason: "it runs until its end" },
  { state: "paused", more: { running: "finish" }, reason: "its turn comes: 10 are moved at a time" },
  { state: "running", more: { deadlineAt: NOW }, reason: "the deadline has passed before its turn" },
  {
    state: "running",
    more: { deadlineAt: NOW, atDeadline: "kill" },
    reason: "the deadline has passed: it is about to be ended",
  },
  {
    state: "paused",
    more: { deadlineAt: NOW, atDeadline: "kill" },
    reason: "the deadline has passed before its turn",
  },
  { state: "running", more: { endedAt: NOW }, reason: "the drain has ended before its turn" },
] as const)("a sandbox that is $state and that a drain has not begun with ($more) says: $reason", (each) => {
  expect(whyWaiting(each.state, { drain: { ...drain, ...each.more }, now: NOW })).toBe(each.reason);
});

/** A node with sandboxes, and an orchestrator that carries plans out, fails at steps, and ends in the middle of them. */
interface World {
  readonly here: Map<string, "running" | "paused">;
  readonly elsewhere: Map<string, "running" | "paused">;
  readonly moves: Map<string, Move>;
  working: Set<string>;
  now: number;
}

const event = oneof(
  {
    weight: 6,
    arbitrary: record({
      is: constant("step" as const),
      of: nat(),
      how: constantFrom("arrives", "fails", "stays"),
    }),
  },
  { weight: 1, arbitrary: record({ is: constant("crash" as const) }) },
  { weight: 1, arbitrary: record({ is: constant("stop" as const) }) },
  { weight: 1, arbitrary: record({ is: constant("again" as const) }) },
);

test("whatever fails and whenever the orchestrator ends, no sandbox is lost, none is left between two nodes, and the limit holds", () => {
  assert(
    property(
      integer({ min: 1, max: 8 }),
      integer({ min: 1, max: 3 }),
      array(event, { maxLength: 60 }),
      (count, atOnce, events) => {
        const ids = Array.from({ length: count }, (_, index) => `s${index}`);
        const was = new Map(ids.map((id, index) => [id, index % 2 === 0 ? ("running" as const) : ("paused" as const)]));
        const world: World = {
          here: new Map(was),
          elsewhere: new Map(),
          moves: new Map(),
          working: new Set(),
          now: NOW,
        };
        let own: DrainSides["drain"] = { ...drain, atOnce };
        const plan = () =>
          planDrain({
            drain: own,
            here: [...world.here].map(([id, state]) => ({ id, state })),
            moves: [...world.moves.values()],
            working: world.working,
            now: world.now,
          });
        /** As the worker does: the row first, then the pause, then the start on one of the two nodes. */
        const begin = () => {
          for (const { sandboxId: id, do: what } of plan()) {
            expect(world.working.has(id)).toBe(false);
            const kind =
              what === "goOn" ? (world.moves.get(id)?.was ?? "running") : what === "carry" ? "paused" : "running";
            world.moves.set(id, { sandboxId: id, was: kind, state: "moving", at: world.now });
            if (kind === "running") world.here.set(id, "paused");
            world.working.add(id);
          }
          expect(world.working.size).toBeLessThanOrEqual(atOnce);
        };
        const end = (id: string, how: string) => {
          world.working.delete(id);
          const move = world.moves.get(id);
          if (how === "fails" || move === undefined) return;
          const to = how === "arrives" && own.endedAt === undefined ? world.elsewhere : world.here;
          world.here.delete(id);
          to.set(id, move.was);
          world.moves.set(id, { ...move, state: to === world.here ? "stays" : "moved", at: world.now });
        };
        for (const each of events) {
          world.now += STAYS_MS;
          begin();
          const busy = [...world.working];
          if (each.is === "step" && busy.length > 0) end(busy[each.of % busy.length] ?? "", each.how);
          if (each.is === "crash") world.working = new Set();
          if (each.is === "stop") own = { ...own, endedAt: world.now };
          if (each.is === "again") own = { ...own, endedAt: undefined };
          expect([...world.here.keys(), ...world.elsewhere.keys()].toSorted()).toEqual(ids.toSorted());
        }
        // From now on everything works.
        for (let round = 0; round < 4 * count + 4; round++) {
          world.now += STAYS_MS;
          begin();
          for (const id of world.working) end(id, "arrives");
        }
        const all = new Map([...world.here, ...world.elsewhere]);
        expect(all).toEqual(was.size === all.size ? new Map([...all.keys()].map((id) => [id, was.get(id)])) : was);
        expect([...world.moves.values()].filter(({ state }) => state === "moving")).toEqual([]);
        if (own.endedAt === undefined) expect(world.here.size).toBe(0);
      },
    ),
    { numRuns: 300 },
  );
});

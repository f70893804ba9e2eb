import { describe, expect, test } from "vitest";
import { findEventProblems } from "../../support/fleet/event-order.ts";

/** A life of the sandbox `a`, one event a second. */
const life = (...types: readonly string[]) =>
  types.map((type, index) => ({
    id: `e${index}`,
    type: `sandbox.lifecycle.${type}`,
    sandboxId: "a",
    timestamp: new Date(1_700_000_000_000 + index * 1_000).toISOString(),
  }));
const now = (state: "running" | "paused" | "ended") => ({
  running: new Set(state === "running" ? ["a"] : []),
  paused: new Set(state === "paused" ? ["a"] : []),
});

describe("events that are a life", () => {
  test.each([
    [life("created"), now("running")],
    [life("created", "updated", "checkpointed"), now("running")],
    [life("created", "paused", "resumed", "paused"), now("paused")],
    [life("created", "paused", "killed"), now("ended")],
    [life("killed"), now("ended")],
  ])("case %# has no problems", (events, listed) => {
    expect(findEventProblems(events, listed)).toEqual([]);
  });
});

describe("events that are none", () => {
  test.each([
    [life("created", "created"), now("running"), "the events of a are out of order: created, created"],
    [life("created", "resumed"), now("running"), "the events of a are out of order: created, resumed"],
    [life("created", "killed", "killed"), now("ended"), "the events of a are out of order: created, killed, killed"],
    [life("created", "killed", "paused"), now("paused"), "the events of a are out of order: created, killed, paused"],
    [life("created"), now("ended"), "the events of a say running, and it is ended: created"],
    [life("created", "paused"), now("running"), "the events of a say paused, and it is running: created, paused"],
    [[], now("running"), "a has no events"],
  ])("case %# is told in a sentence", (events, listed, problem) => {
    expect(findEventProblems(events, listed)).toEqual([problem]);
  });

  test("an event that is told twice, and times that go back, are told", () => {
    const [created, paused] = life("created", "paused");
    if (created === undefined || paused === undefined) throw new Error("there are no events");
    expect(findEventProblems([created, { ...paused, id: "e0" }], now("paused"))).toEqual(["event e0 is told twice"]);
    expect(findEventProblems([created, { ...paused, timestamp: "2020-01-01T00:00:00.000Z" }], now("paused"))).toEqual([
      "the times of the events of a go back: created, paused",
    ]);
  });
});

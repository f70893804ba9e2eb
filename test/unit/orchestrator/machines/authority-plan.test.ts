import { describe, expect, test } from "vitest";
import {
  ENDED_MS,
  type Machine,
  nextStep,
  type Replacement,
  unableMachines,
} from "../../../../orchestrator/machines/authority-plan.ts";

const NOW = Date.UTC(2026, 10, 28);
const GRACE = 60_000;
const times = { now: NOW, graceMs: GRACE };
const trusting: Replacement = { former: "old", next: "new", begunAt: NOW - GRACE, signsSince: undefined };
const signing: Replacement = { ...trusting, begunAt: NOW - 10 * GRACE, signsSince: NOW - GRACE };

const machine = (over: Partial<Machine> = {}): Machine => ({
  kind: "node",
  id: "n1",
  joinedAt: NOW - 90 * 86_400_000,
  trusted: ["new", "old"],
  issuer: "new",
  askedAt: NOW - 1_000,
  heardAt: NOW - 1_000,
  ...over,
});

describe("the new authority signs", () => {
  test.each([
    ["when all machines trust it", [machine({ issuer: "old" })], "sign"],
    ["when there are no machines", [], "sign"],
    ["not while a machine does not trust it", [machine(), machine({ id: "n2", trusted: ["old"] })], undefined],
    [
      "not while an edge of an earlier version may run",
      [machine({ kind: "edge", askedAt: undefined, heardAt: undefined })],
      undefined,
    ],
    [
      "without a node whose certificate has ended",
      [machine({ trusted: ["old"], askedAt: NOW - ENDED_MS - 1, heardAt: NOW - ENDED_MS - 1 })],
      "sign",
    ],
    ["not without a node that reports and says nothing", [machine({ trusted: [], askedAt: undefined })], undefined],
    [
      "not without a node that has just joined",
      [machine({ trusted: [], askedAt: undefined, heardAt: undefined, joinedAt: NOW - 5_000 })],
      undefined,
    ],
  ] as const)("%s", (_case, machines, step) => expect(nextStep(trusting, machines, times).do).toBe(step));

  test("not before every orchestrator has read of it", () => {
    const step = nextStep({ ...trusting, begunAt: NOW - GRACE + 1 }, [machine()], times);
    expect(step.do).toBeUndefined();
    expect(step.waits).toMatchObject([{ kind: "orchestrators" }]);
  });
});

describe("the former authority is dropped", () => {
  test.each([
    [
      "when all certificates are of the new one",
      [machine(), machine({ kind: "edge", id: "e1", heardAt: undefined })],
      "drop",
    ],
    ["not while a certificate is of the former one", [machine({ issuer: "old" })], undefined],
    [
      "without an edge whose certificate has ended",
      [machine({ kind: "edge", issuer: "old", askedAt: NOW - ENDED_MS - 1, heardAt: undefined })],
      "drop",
    ],
  ] as const)("%s", (_case, machines, step) => expect(nextStep(signing, machines, times).do).toBe(step));

  test("not before every orchestrator shows a certificate of the new one", () => {
    expect(nextStep({ ...signing, signsSince: NOW - GRACE + 1 }, [machine()], times).do).toBeUndefined();
  });

  test("and each machine that is waited for is named with its reason", () => {
    const machines = [machine({ issuer: "old" }), machine({ kind: "edge", id: "e1", askedAt: undefined })];
    expect(nextStep(signing, machines, times).waits).toEqual([
      { kind: "node", id: "n1", reason: "has a certificate of the former authority" },
      { kind: "edge", id: "e1", reason: expect.stringContaining("earlier version") as string },
    ]);
  });
});

test("machines that say nothing cannot follow, unless their certificate has ended", () => {
  const silent = machine({ id: "n2", askedAt: undefined });
  const ended = machine({ id: "n3", askedAt: undefined, heardAt: NOW - ENDED_MS - 1 });
  expect(unableMachines([machine(), silent, ended], NOW).map(({ id }) => id)).toEqual(["n2"]);
});

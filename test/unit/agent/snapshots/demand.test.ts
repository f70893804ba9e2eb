import { describe, expect, test } from "vitest";
import { createDemand } from "../../../../agent/snapshots/shells/demand.ts";

const MINUTE = 60_000;

describe("how many shells are kept", () => {
  test("as many as were asked for together", () => {
    const demand = createDemand();
    for (const at of [0, 10, 20]) demand.asked("a", at);
    demand.asked("b", 30);
    expect(demand.wanted(10, 40)).toEqual(
      new Map([
        ["b", 1],
        ["a", 3],
      ]),
    );
  });

  test("a later smaller burst keeps the larger one's number", () => {
    const demand = createDemand();
    for (const at of [0, 10, 20]) demand.asked("a", at);
    demand.asked("a", MINUTE);
    expect(demand.wanted(10, MINUTE).get("a")).toBe(3);
  });

  test("what is asked for one after the other needs one", () => {
    const demand = createDemand();
    for (const at of [0, MINUTE, 2 * MINUTE]) demand.asked("a", at);
    expect(demand.wanted(10, 2 * MINUTE).get("a")).toBe(1);
  });

  test("one that is expected has one, and nobody more than all together may have", () => {
    const demand = createDemand();
    demand.expected("a", 0);
    expect(demand.wanted(10, 0)).toEqual(new Map([["a", 1]]));
    for (let asked = 0; asked < 12; asked++) demand.asked("b", 1);
    expect(demand.wanted(10, 1)).toEqual(new Map([["b", 10]]));
    expect(demand.wanted(0, 1)).toEqual(new Map());
  });

  test("nobody asks for a quarter of an hour: none", () => {
    const demand = createDemand();
    demand.asked("a", 0);
    expect(demand.wanted(10, 15 * MINUTE).size).toBe(1);
    expect(demand.wanted(10, 15 * MINUTE + 1).size).toBe(0);
  });
});

import { describe, expect, test } from "vitest";
import { createCpuSets } from "../../../../agent/cpu-sets/cpu-sets.ts";

const FOUR = [0, 1, 2, 3];

/** Takes a set for a container and makes it its own. */
function made(sets: ReturnType<typeof createCpuSets>, id: string, count: number) {
  const cpus = sets.take(count);
  sets.own(id, cpus);
  return cpus;
}

describe("a container with fewer CPUs than the machine", () => {
  test("gets the processors that the fewest containers use", () => {
    const sets = createCpuSets(FOUR);
    expect([made(sets, "a", 1), made(sets, "b", 2), made(sets, "c", 1), made(sets, "d", 2)]).toEqual([
      [0],
      [1, 2],
      [3],
      [0, 1],
    ]);
  });

  test("counts from the choice on, so that two that are made at once get different ones", () => {
    const sets = createCpuSets([0, 1]);
    expect([sets.take(1), sets.take(1)]).toEqual([[0], [1]]);
  });

  test("gives its processors back when it is gone or could not be made", () => {
    const sets = createCpuSets([0, 1]);
    made(sets, "a", 1);
    const lost = sets.take(1);
    sets.give(lost);
    expect(made(sets, "b", 1)).toEqual([1]);
    sets.free("a");
    sets.free("a");
    expect(sets.take(1)).toEqual([0]);
  });

  test("keeps its processors while it is paused, and others are chosen as if it were not there", () => {
    const sets = createCpuSets([0, 1]);
    made(sets, "paused", 1);
    sets.rest("paused");
    sets.rest("paused");
    expect(made(sets, "b", 1)).toEqual([0]);
    sets.wake("paused");
    sets.wake("paused");
    expect(made(sets, "c", 1)).toEqual([1]);
    expect(made(sets, "d", 1)).toEqual([1]);
  });

  test("is counted again by the next agent process", () => {
    const sets = createCpuSets([0, 1]);
    sets.adopt("a", "0", true);
    sets.adopt("paused", "1", false);
    expect([sets.knows("a"), sets.knows("x")]).toEqual([true, false]);
    expect(sets.take(1)).toEqual([1]);
  });
});

test("a container with as many CPUs as the machine or more has no set, and no other avoids its processors", () => {
  const sets = createCpuSets([0, 1]);
  expect([made(sets, "a", 2), made(sets, "b", 8)]).toEqual([undefined, undefined]);
  expect([made(sets, "c", 1), made(sets, "d", 1)]).toEqual([[0], [1]]);
});

describe("a change of the number of CPUs", () => {
  test("adds the least used ones to those it has, and keeps the least used of them", () => {
    const sets = createCpuSets(FOUR);
    made(sets, "a", 1);
    made(sets, "b", 2);
    expect(sets.change("a", 2)).toBe("0,3");
    made(sets, "c", 1);
    expect(sets.change("a", 1)).toBe("3");
    expect(sets.take(3)).toEqual([0, 1, 2]);
  });

  test("to as many as there are lists them all, and counts for none of them", () => {
    const sets = createCpuSets([0, 1]);
    made(sets, "a", 1);
    expect(sets.change("a", 4)).toBe("0,1");
    expect([made(sets, "b", 1), made(sets, "c", 1)]).toEqual([[0], [1]]);
    expect(sets.change("a", 1)).toBe("0");
  });
});

/** Which element of the console's list shows which row. */

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { inView, reassigned } from "../../../console/src/sandboxes/slots.ts";

const rows = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `row-${from + index}`);

test("a row that stays in view keeps its element, and one that comes takes the element of one that has left", () => {
  const before = reassigned(new Map(), rows(0, 4));
  expect([...before.values()]).toEqual([0, 1, 2, 3]);
  const after = reassigned(before, rows(2, 6));
  expect(Object.fromEntries(after)).toEqual({ "row-2": 2, "row-3": 3, "row-4": 0, "row-5": 1 });
});

test("a row that is inserted above does not take the element of a row below it", () => {
  const before = reassigned(new Map(), ["a", "b", "c"]);
  expect(Object.fromEntries(reassigned(before, ["new", "a", "b"]))).toEqual({ new: 2, a: 0, b: 1 });
});

test("every row in view has an element of its own, and there are as many elements as rows in view", () => {
  const shown = fc.uniqueArray(fc.integer({ min: 0, max: 40 }).map(String), { maxLength: 20 });
  fc.assert(
    fc.property(fc.array(shown, { minLength: 1, maxLength: 12 }), (steps) => {
      let slots: ReadonlyMap<string, number> = new Map();
      for (const ids of steps) {
        const next = reassigned(slots, ids);
        expect([...next.keys()]).toEqual(ids);
        expect([...next.values()].sort((a, b) => a - b)).toEqual([...ids.keys()]);
        for (const [id, slot] of next) {
          const was = slots.get(id);
          if (was !== undefined && was < ids.length) expect(slot).toBe(was);
        }
        slots = next;
      }
    }),
  );
});

test.each([
  { scrollTop: 0, first: 0 },
  { scrollTop: 36 * 6, first: 0 },
  { scrollTop: 36 * 7 + 35, first: 1 },
  { scrollTop: 36 * 5000, first: 4994 },
])("at $scrollTop pixels the rows from $first on are in the page, always as many", ({ scrollTop, first }) => {
  expect(inView({ scrollTop, height: 460, rowHeight: 36 }, 6)).toEqual({ first, count: 26 });
});

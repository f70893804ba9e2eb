/** Pages of the dashboard's lists. */

import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  byNameAscending,
  byNameDescending,
  byTimeAscending,
  byTimeDescending,
  fromCursor,
  type Place,
  pageOf,
  toCursor,
} from "../../../../orchestrator/dashboard/cursors.ts";

const DAY = Date.parse("2026-11-01T00:00:00Z");

test.each([
  ["created_at_desc", byTimeDescending],
  ["latest_asc", byTimeAscending],
])("pages of the order %s show every item once, also when times are equal", (sort, compare) => {
  const places = fc.uniqueArray(
    fc.record({ at: fc.integer({ min: 0, max: 3 }).map((ms) => DAY + ms), name: fc.stringMatching(/^[a-z]{1,3}$/) }),
    { selector: ({ name }) => name, maxLength: 20 },
  );
  fc.assert(
    fc.property(places, fc.integer({ min: 1, max: 5 }), (items, limit) => {
      const seen: Place[] = [];
      let cursor: string | undefined;
      for (let page = 0; page <= items.length; page++) {
        const { items: more, nextCursor } = pageOf(items, { sort, cursor, limit, placeOf: (place) => place, compare });
        seen.push(...more);
        if (nextCursor === null) break;
        cursor = nextCursor;
      }
      expect(seen).toEqual([...items].sort(compare));
    }),
  );
});

test("an order by name does not look at times", () => {
  const items = [
    { at: DAY + 2, name: "a" },
    { at: DAY, name: "b" },
  ];
  const named = (compare: (a: Place, b: Place) => number) =>
    pageOf(items, { cursor: undefined, limit: 9, placeOf: (place) => place, compare }).items.map(({ name }) => name);
  expect(named(byNameAscending)).toEqual(["a", "b"]);
  expect(named(byNameDescending)).toEqual(["b", "a"]);
});

test.each([
  ["", undefined],
  ["2026-11-01T00:00:00.000Z|build", undefined],
  ["nonsense", undefined],
  ["never|build", undefined],
  ["latest_desc|2026-11-01T00:00:00.000Z|", "latest_desc"],
  ["latest_asc|2026-11-01T00:00:00.000Z|a", "latest_desc"],
  ["2026-11-01T00:00:00.000Z|a", "latest_desc"],
  ["latest_desc|2026-11-01T00:00:00.000Z|a|b", "latest_desc"],
])("the cursor '%s' of the order %s is read or refused", (cursor, sort) => {
  const read = () => fromCursor(cursor, sort);
  if (cursor === "") expect(read()).toBeUndefined();
  else if (sort === undefined && cursor.startsWith("2026")) expect(read()).toEqual({ at: DAY, name: "build" });
  else expect(read).toThrow("no cursor of this list");
});

test("a cursor leads back to its place", () => {
  const place = { at: DAY + 123, name: "v1.2_a-b" };
  expect(fromCursor(toCursor(place, "name_asc"), "name_asc")).toEqual(place);
});

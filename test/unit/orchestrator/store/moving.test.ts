/** The order in which tables are moved into another database, and what differs afterwards. */

import { expect, test } from "vitest";
import { copyOrder, differentCounts, rowsAtOnce } from "../../../../orchestrator/store/moving/plan.ts";

test("each table is copied after those that its rows name", () => {
  const order = copyOrder([
    { name: "api_keys", references: ["projects"] },
    { name: "builds", references: ["templates", "builds"] },
    { name: "projects", references: [] },
    { name: "templates", references: ["projects"] },
    { name: "audit", references: [] },
  ]);
  expect(order).toEqual(["audit", "projects", "api_keys", "templates", "builds"]);
});

test("tables that name each other have no order", () => {
  expect(() =>
    copyOrder([
      { name: "a", references: ["b"] },
      { name: "b", references: ["a"] },
    ]),
  ).toThrow("these tables name each other: a,b");
});

test.each([
  [1, 500],
  [60, 333],
  [30_000, 1],
])("a statement for rows of %i columns has %i of them", (columns, rows) => {
  expect(rowsAtOnce(columns)).toBe(rows);
});

test("tables whose numbers of records differ are named", () => {
  expect(differentCounts({ a: 1, b: 2 }, { a: 1, b: 2 })).toEqual([]);
  expect(differentCounts({ a: 1, b: 2 }, { a: 3, c: 0 })).toEqual([
    "a: 1 in SQLite, 3 in PostgreSQL",
    "b: 2 in SQLite, no table in PostgreSQL",
    "c: no table in SQLite, 0 in PostgreSQL",
  ]);
});

/** The key that is made in the place of another one, and how keys are told apart. */

import { expect, test } from "vitest";
import { maskOf, successorOf, titleOf } from "../../../../console/src/project/rotation.ts";

const mask = { prefix: "svc_", valueLength: 40, maskedValuePrefix: "ab", maskedValueSuffix: "beef" };
const KEY = { name: "ci", mask, createdAt: "2026-01-01T00:00:00.000Z", scopes: ["read", "templates"] as const };
const of = (more: object = {}) => ({ ...KEY, scopes: [...KEY.scopes], ...more });
const NOW = Date.parse("2026-03-01T12:00:00.000Z");

test.each([
  ["that does not end", {}, { name: "ci", scopes: ["read", "templates"] }],
  ["whose end is null", { expiresAt: null }, { name: "ci", scopes: ["read", "templates"] }],
  [
    "of ninety days",
    { expiresAt: "2026-04-01T00:00:00.000Z" },
    { name: "ci", scopes: ["read", "templates"], expiresAt: "2026-05-30T12:00:00.000Z" },
  ],
  [
    "that has ended already",
    { expiresAt: "2026-01-11T00:00:00.000Z" },
    { name: "ci", scopes: ["read", "templates"], expiresAt: "2026-03-11T12:00:00.000Z" },
  ],
])("the successor of a key %s may do what that one may, for as long a time", (_which, more, body) => {
  expect(successorOf(of(more), NOW)).toEqual(body);
});

test("the mask of a key is that of the session and of the audit log", () => {
  expect(maskOf(KEY)).toBe("svc_ab…beef");
});

test("keys of one name are told apart by the end of each, and others by their name", () => {
  const other = { ...KEY, mask: { ...mask, maskedValueSuffix: "feed" } };
  expect(titleOf(KEY, [KEY, { name: "web" }])).toBe("ci");
  expect([KEY, other].map((key) => titleOf(key, [KEY, other]))).toEqual(["ci …beef", "ci …feed"]);
});

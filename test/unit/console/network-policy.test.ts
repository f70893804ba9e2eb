/** The editor of a sandbox's network policy: what it shows of stored rules, and what it sends. */

import { expect, test } from "vitest";
import { isOpenHeader } from "../../../console/src/base/without-secrets.ts";
import { editedOf, NEW_RULE, updateOf } from "../../../console/src/sandbox/network/policy.ts";

const stored = {
  allowInternetAccess: false,
  network: {
    allowOut: ["api.test"],
    denyOut: ["10.0.0.0/8"],
    rules: {
      "api.test": [
        {
          transform: {
            headers: { Authorization: "Bearer ${e2b.secrets.openai}", "X-Plain": "hunter2" },
            allowPlainHttp: true,
          },
        },
      ],
    },
  },
};

test.each([
  ["Bearer ${e2b.secrets.openai}", true],
  ["${svc.identity.tokens.sts}", true],
  ["", true],
  ["hunter2", false],
  ["Bearer hunter2", false],
  ["hunter2-and-more-of-it ${e2b.secrets.openai}", false],
])("whether %j may be shown: %s", (value, expected) => {
  expect(isOpenHeader(value)).toBe(expected);
});

test("a stored value that may be a secret is not shown, and stays when nothing is typed", () => {
  const edited = editedOf(stored);
  expect(edited.rules[0]?.headers.map(({ value }) => value)).toEqual(["Bearer ${e2b.secrets.openai}", ""]);
  expect(updateOf(edited, stored)).toEqual({
    allowOut: ["api.test"],
    denyOut: ["10.0.0.0/8"],
    rules: stored.network.rules,
    allow_internet_access: false,
  });
});

test("a typed value replaces the one that is not shown", () => {
  const edited = editedOf(stored);
  const headers = edited.rules[0]?.headers.map((header) =>
    header.name === "X-Plain" ? { ...header, value: "n" } : header,
  );
  const update = updateOf(
    { ...edited, rules: [{ host: "api.test", allowPlainHttp: false, headers: headers ?? [] }] },
    stored,
  );
  expect(update.rules?.["api.test"]?.[0]?.transform).toEqual({
    headers: { Authorization: "Bearer ${e2b.secrets.openai}", "X-Plain": "n" },
  });
});

test("a sandbox that is closed to the internet stays closed, until somebody opens it", () => {
  const edited = editedOf({ allowInternetAccess: false });
  expect(updateOf(edited, { allowInternetAccess: false }).allow_internet_access).toBe(false);
  expect(updateOf({ ...edited, isClosed: false }, { allowInternetAccess: false })).toEqual({
    allowOut: [],
    denyOut: [],
  });
  expect(updateOf(editedOf({ allowInternetAccess: true }), { allowInternetAccess: true }).allow_internet_access).toBe(
    true,
  );
});

test.each([
  [[NEW_RULE], "A rule has no host"],
  [
    [
      { ...NEW_RULE, host: "a.test" },
      { ...NEW_RULE, host: "A.test " },
    ],
    "The host a.test has two rules",
  ],
  [
    [
      {
        ...NEW_RULE,
        host: "a.test",
        headers: [
          { name: "X", value: "1" },
          { name: "x", value: "2" },
        ],
      },
    ],
    "sets the header x twice",
  ],
])("rules that would overwrite each other are refused: %j", (rules, why) => {
  expect(() => updateOf({ ...editedOf({}), rules }, {})).toThrow(why);
});

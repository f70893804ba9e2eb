/** Which roles the values of a claim give. */

import { expect, test } from "vitest";
import { grantsOf, readRules, valuesOf } from "../../../../orchestrator/console/oidc/roles.ts";

test("rules are read with values that have equals signs themselves", () => {
  expect(readRules("engineers=default:member; cn=leads,dc=example,dc=com=prj_1:admin;")).toEqual([
    { value: "engineers", project: "default", role: "member" },
    { value: "cn=leads,dc=example,dc=com", project: "prj_1", role: "admin" },
  ]);
});

test.each([
  "engineers",
  "engineers=default",
  "engineers=default:owner",
  "=default:admin",
  "a=b c:admin",
  "a=b:toString",
])("the rule '%s' is refused", (text) => {
  expect(() => readRules(text)).toThrow("SVC_OIDC_ROLES");
});

test.each([
  ["a list", { groups: ["a", "b", 3] }, "groups", ["a", "b"]],
  ["a text", { groups: "a" }, "groups", ["a"]],
  ["a path into objects", { realm_access: { roles: ["a"] } }, "realm_access.roles", ["a"]],
  ["a claim whose name has dots", { "https://example.com/groups": ["a"] }, "https://example.com/groups", ["a"]],
  ["an absent claim", {}, "groups", []],
  ["a claim of an object's own methods", {}, "constructor.name", []],
  ["a verified address", { email: "a@example.com", email_verified: true }, "email", ["a@example.com"]],
  ["an address that nobody has verified", { email: "a@example.com" }, "email", []],
  ["an address that is verified in words", { email: "a@example.com", email_verified: "true" }, "email", []],
])("values of %s", (_name, claims, claim, values) => {
  expect(valuesOf(claims, claim)).toEqual(values);
});

test("roles of one project add up, those of another one stay there, and no value gives nothing", () => {
  const rules = readRules("readers=one:viewer; engineers=one:member; engineers=two:viewer; leads=three:admin");
  expect(grantsOf(rules, ["readers", "engineers"])).toEqual([
    { project: "one", scopes: ["read", "sandboxes", "templates"] },
    { project: "two", scopes: ["read"] },
  ]);
  expect(grantsOf(rules, ["Leads", "lead"])).toEqual([]);
});

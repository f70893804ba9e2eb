/** Every route that can change something is recorded, or is listed with the reason why it is not. */

import { expect, test } from "vitest";
import { ACTIONS, actionOf, plainFields, UNRECORDED } from "../../../../orchestrator/audit/actions.ts";
import { createRefusals } from "../../../../orchestrator/audit/refusals.ts";
import { publicApi } from "../../../../shared/api/public.ts";
import type { Contract } from "../../../../shared/http/contract.ts";

const routes = Object.entries(publicApi as Contract);

test.each(routes.filter(([, { method }]) => method !== "GET"))(
  "%s is recorded, or has a reason",
  (operation, route) => {
    const listed = [ACTIONS[operation], UNRECORDED[operation]].filter((entry) => entry !== undefined);
    expect(listed, "list the route in orchestrator/audit/actions.ts").toHaveLength(1);
    const param = ACTIONS[operation]?.param;
    if (param !== undefined) expect(route.path).toContain(`{${param}}`);
  },
);

test("reads are not recorded", () => {
  for (const [operation, route] of routes.filter(([, { method }]) => method === "GET")) {
    expect(actionOf(operation, route)).toBeUndefined();
  }
});

test("a route that nobody has listed is recorded with the last id of its path", () => {
  const route = {
    method: "POST",
    path: "/things/{thingID}/parts/{partID}/turn",
    summary: "",
    tag: "",
    status: 204,
  } as const;
  expect(actionOf("turn", { ...route, access: "project" })).toMatchObject({ param: "partID", steps: "several" });
});

test("no field of an entry can hold a secret, and fields are short", () => {
  const names = Object.values(ACTIONS).flatMap(({ fields = [], shown = [] }) => [...fields, ...shown]);
  expect(names.filter((name) => /token|secret$|value|env|password|headers?|metadata|^key$|url/i.test(name))).toEqual([
    // The addresses of webhooks, of which the query is left out.
    "url",
    "url",
  ]);
  expect(plainFields({ url: "https://a.example/b?token=c" }, ["url"])).toEqual({ url: "https://a.example/b?…" });
  const limits = { sandboxes: 5, volumes: null };
  expect(plainFields({ limits, deep: { a: { b: "c" } } }, ["limits", "deep", "deep.a.b", "deep.x.y"])).toEqual({
    limits,
    "deep.a.b": "c",
  });
  const body = {
    name: "n".repeat(1000),
    tags: Array.from({ length: 40 }, () => "t"),
    force: true,
    steps: [{ args: ["x"] }],
  };
  const fields = plainFields(body, ["name", "tags", "force", "steps", "absent"]);
  expect(Object.keys(fields)).toEqual(["name", "tags", "force"]);
  expect((fields["name"] as string).length).toBe(257);
  expect(fields["tags"]).toHaveLength(16);
});

test("each caller has a limited number of refusals in a minute, and the rest is counted", () => {
  const clock = { now: 0 };
  const refusals = createRefusals(() => clock.now);
  const admitted = Array.from({ length: 30 }, () => refusals.admit("key-1", true)).filter(Boolean);
  expect(admitted).toHaveLength(20);
  expect(refusals.admit("key-2", true)).toBe(true);
  expect(refusals.takeLeftOut()).toEqual([]);
  clock.now = 60_000;
  expect(refusals.takeLeftOut()).toEqual([{ who: "key-1", count: 10 }]);
  expect(refusals.takeLeftOut()).toEqual([]);
  expect(refusals.admit("key-1", true)).toBe(true);
});

test("callers that nobody has identified share a limit, from however many addresses they come", () => {
  const clock = { now: 0 };
  const refusals = createRefusals(() => clock.now);
  const admitted = Array.from({ length: 100 }, (_, index) => refusals.admit(`198.51.100.${index}`, false)).filter(
    Boolean,
  );
  expect(admitted).toHaveLength(60);
  clock.now = 60_000;
  expect(refusals.takeLeftOut()).toEqual([{ who: "", count: 40 }]);
});

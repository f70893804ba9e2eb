/** The table of changes during which an orchestrator of a fleet is killed has every route that changes something. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { EVERY_CHANGE, LEFT_OUT } from "../../support/fleet/changes/every-change.ts";
import { ROUTES } from "../../support/fleet/insist.ts";

interface Operation {
  readonly responses: Readonly<Record<string, unknown>>;
}

const SAFE: ReadonlySet<string> = new Set(["get", "head", "options"]);
const { paths } = JSON.parse(readFileSync(new URL("../../../shared/openapi.json", import.meta.url), "utf8")) as {
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};
/** But for those that were removed, which change nothing. */
const changing = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([method, { responses }]) => !SAFE.has(method) && !Object.hasOwn(responses, "410"))
    .map(([method]) => `${method.toUpperCase()} ${path}`),
);

test("every route of the API that changes something is in the table, in the tests of single sandboxes, or left out for a reason", () => {
  const tried = [...EVERY_CHANGE.map(({ route }) => route), ...Object.values(ROUTES)];
  const known = new Set([...tried, ...Object.keys(LEFT_OUT)]);
  expect(changing.filter((route) => !known.has(route))).toEqual([]);
  expect([...known].filter((route) => !changing.includes(route))).toEqual([]);
  expect(Object.keys(LEFT_OUT).filter((route) => tried.includes(route))).toEqual([]);
});

import { describe, expect, test } from "vitest";
import { answerOf, curlOf, exampleOf } from "../../../../orchestrator/api/docs/examples.ts";
import { docsPage } from "../../../../orchestrator/api/docs/page.ts";
import { describedApi } from "../../../../shared/api/public.ts";
import type { Contract } from "../../../../shared/http/contract.ts";
import { toOpenApi } from "../../../../shared/http/openapi.ts";
import { check } from "../../../../shared/http/validate.ts";

const routes: Contract = describedApi;
const document = toOpenApi(describedApi);
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
);

describe.each(operations)("$method $path", ({ path, method, operation }) => {
  const route = routes[operation.operationId];
  const command = curlOf(method, path, operation);

  test("has an example request that its own schema accepts", () => {
    expect(command).toContain(`"$E2B_API_URL${path.replaceAll("{", "${")}`);
    const data = /-d '(.*)'$/s.exec(command)?.[1]?.replaceAll("'\\''", "'");
    expect(data !== undefined).toBe(route?.body !== undefined);
    if (route?.body !== undefined) check(route.body, "body").parse(JSON.parse(data ?? ""));
  });

  test("has an example answer that its own schema accepts", () => {
    const answer = answerOf(operation);
    // A route that is only announced has no answer to show.
    expect(answer !== undefined).toBe(route?.reply !== undefined);
    if (route?.reply !== undefined && answer !== undefined) check(route.reply, "reply").parse(answer);
  });
});

test("an example uses the authentication scheme that most callers have", () => {
  const command = (id: string) => {
    const found = operations.find(({ operation }) => operation.operationId === id);
    if (found === undefined) throw new Error(`there is no operation ${id}`);
    return curlOf(found.method, found.path, found.operation);
  };
  expect(command("listSecrets")).toContain('-H "X-API-Key: $E2B_API_KEY"');
  expect(command("listVolumes")).toMatch(/^curl "\$E2B_API_URL\/volumes" /);
  expect(command("requestBuild")).toContain(`-d '{"name":"my-app"}'`);
});

test("a field is shown by its own example, its default, its first word, or its name", () => {
  const schema = {
    properties: {
      own: { type: "string", examples: ["this"] },
      preset: { type: "integer", default: 7 },
      word: { enum: ["a", "b"] },
      userName: { type: "string" },
      count: { type: "integer", minimum: 128 },
      at: { type: "string", format: "date-time" },
      link: { type: "string", pattern: "^https?://" },
      none: { anyOf: [{ type: "null" }, { type: "boolean" }] },
      addresses: { items: { type: "string" } },
    },
    required: ["word"],
  };
  expect(exampleOf(schema, "answer")).toEqual({
    own: "this",
    preset: 7,
    word: "a",
    userName: "user-name",
    count: 128,
    at: "2026-01-31T12:00:00.000Z",
    link: "https://example.com/link",
    none: true,
    addresses: ["address"],
  });
  expect(exampleOf(schema, "request")).toEqual({ own: "this", word: "a" });
});

test("the page shows every example without a click, so that a browser's search finds it, and stays small", () => {
  const { html } = docsPage(document);
  expect(html.split("<details open")).toHaveLength(operations.length + 1);
  expect(html.split("curl ")).toHaveLength(operations.length + 1);
  expect(html).not.toMatch(/<script|src=|undefined/);
  expect(html.length).toBeLessThan(310_000);
});

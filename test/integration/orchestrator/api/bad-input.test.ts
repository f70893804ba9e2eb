/** Every field of every body and query of the public contract, wrong in every way that its schema can tell. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { publicApi } from "../../../../shared/api/public.ts";
import type { Route } from "../../../../shared/http/contract.ts";
import { ADMIN_TOKEN, type Ask, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { bad, good, optional, pathOf, type Schema, withField } from "../../../support/samples.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ config: { rateLimitWritePerSecond: 100_000, rateLimitCreatePerSecond: 100_000 } });
});
afterAll(() => cluster.stop());

const routes: [string, Route][] = Object.entries(publicApi);

function credentials(route: Route): Ask {
  if (route.access === "project") return {};
  return { key: null, headers: { "x-admin-token": ADMIN_TOKEN, "x-team-id": cluster.teamId } };
}

describe("bodies", () => {
  const table = routes.filter(([, route]) => route.body !== undefined);
  test.each(table)("%s refuses each wrong field by name", async (_name, route) => {
    const schema = route.body as Schema;
    const cases = bad(schema);
    expect(cases.length).toBeGreaterThan(0);
    for (const { what, field, value, message } of cases) {
      const body = withField(good(schema), field, value);
      const answer = await cluster.ask(route.method, pathOf(route), { ...credentials(route), body });
      const said = (answer.body as { message?: string }).message ?? "";
      const name = field.split(".").at(-1) ?? "";
      const context = `${what} as '${field}' answered ${answer.status} ${said}`;
      expect(answer.status, context).toBe(400);
      expect(answer.body, context).toMatchObject({ code: 400, error_code: "bad_request" });
      if (message === undefined) expect(said, context).toContain(name);
      else expect(said, context).toBe(message);
    }
  });

  test.each(table)("%s refuses a body that is no object, and broken JSON", async (_name, route) => {
    for (const body of ["[]", '"text"', "5", "{", "\u0000"]) {
      const answer = await cluster.ask(route.method, pathOf(route), { ...credentials(route), body });
      expect(answer.status, body).toBe(400);
    }
  });

  test.each(table)("%s takes null for an optional field as absent", async (_name, route) => {
    const schema = route.body as Schema;
    const answers = async (body: unknown) => {
      const { status, body: answer } = await cluster.ask(route.method, pathOf(route), { ...credentials(route), body });
      // A second secret of the same name would be a conflict.
      if (route.path === "/secrets") await cluster.ask("DELETE", `/secrets/${(answer as { name: string }).name}`);
      return [status, status < 400 ? undefined : (answer as { message: string }).message];
    };
    for (const field of optional(schema)) {
      const absent = await answers(withField(good(schema), field, undefined));
      expect(await answers(withField(good(schema), field, null)), field).toEqual(absent);
    }
  });

  test.each(table)("%s refuses null for a required field by name", async (_name, route) => {
    for (const field of (route.body as Schema).required ?? []) {
      const body = withField(good(route.body as Schema), field, null);
      const answer = await cluster.ask(route.method, pathOf(route), { ...credentials(route), body });
      expect([answer.status, (answer.body as { message: string }).message]).toEqual([
        400,
        expect.stringContaining(field.replace(/^timeout$/, "imeout")),
      ]);
    }
  });

  test.each(table)(
    "%s refuses a field that it does not know, or is one that newer SDKs may add to",
    async (_name, route) => {
      const schema = route.body as Schema;
      const body = { ...(good(schema) as object), no_such_property: { deep: true } };
      const answer = await cluster.ask(route.method, pathOf(route), { ...credentials(route), body });
      if (schema.additionalProperties === true) expect(answer.text).not.toContain("no_such_property");
      else {
        expect([answer.status, (answer.body as { message: string }).message]).toEqual([
          400,
          expect.stringContaining("`no_such_property` is not a field: the request takes `"),
        ]);
      }
    },
  );
});

describe("queries", () => {
  const table = routes.filter(([, route]) => route.query !== undefined);
  test.each(table)("%s refuses each wrong value by name", async (_name, route) => {
    const required = good(route.query as Schema) as Record<string, unknown>;
    for (const { what, field, value } of bad(route.query as Schema)) {
      // A URL holds only text, so a wrong number is one that is out of range or no number at all.
      if (typeof value !== "string" && typeof value !== "number") continue;
      if (what === "a number" || (what === "text" && /^(5|true)$/.test(String(value)))) continue;
      const pairs = Object.entries({ ...required, [field]: value }).map(([k, v]): [string, string] => [k, String(v)]);
      const query = new URLSearchParams(pairs);
      const answer = await cluster.ask(route.method, `${pathOf(route)}?${query.toString()}`, credentials(route));
      const context = `${what} as '${field}' answered ${answer.status} ${answer.text.slice(0, 200)}`;
      expect(answer.status, context).toBe(400);
      expect((answer.body as { message: string }).message, context).toContain(field);
    }
  });

  test.each(["abc", "1.5", "", " 5", "0", "101", "-1", "1e2", "99999999999999999999"])(
    "limit=%s is refused",
    async (limit) => {
      const answer = await cluster.ask("GET", `/v2/sandboxes?limit=${encodeURIComponent(limit)}`);
      expect(answer.status).toBe(400);
      expect((answer.body as { message: string }).message).toContain("limit");
    },
  );
});

describe("paths", () => {
  test.each([
    ["that cannot be decoded", "/sandboxes/%zz"],
    ["with half a character", "/sandboxes/%C3%28"],
    ["with an endless part", `/sandboxes/${"a".repeat(2000)}`],
  ])("one %s is refused with the error body, readable for a browser", async (_what, path) => {
    const answer = await cluster.ask("GET", path);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: 400, message: expect.any(String) as string, error_code: "bad_request" });
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
  });
});

describe("words of the contract", () => {
  const create = (body: object) => cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", ...body } });

  test.each([0, -1])("timeout %i is not above zero", async (timeout) => {
    expect((await create({ timeout })).body).toMatchObject({ code: 400, message: "Timeout must be greater than 0" });
  });

  test("a timeout beyond the project's limit is refused in hours, before the sandbox is looked for", async () => {
    expect((await create({ timeout: 25 * 3600 })).body).toMatchObject({
      code: 400,
      message: "Timeout cannot be greater than 24 hours",
    });
    const answer = await cluster.ask("POST", "/v2/sandboxes/inosuchsandbox/connect", { body: { timeout: 25 * 3600 } });
    expect(answer.status).toBe(400);
  });

  test.each([
    [{ network: { allowOut: ["example.com"] } }, "ALL_TRAFFIC"],
    [{ network: { denyOut: ["example.com"] } }, "invalid denied CIDR example.com"],
    [{ network: { denyOut: ["0.0.0.0"] } }, "invalid denied CIDR"],
    [{ network: { denyOut: ["10.0.0.0/33"] } }, "invalid denied CIDR"],
    [{ network: { allowOut: ["exa mple.com"], denyOut: ["0.0.0.0/0"] } }, "invalid allowed destination"],
    [{ network: { httpsPorts: [49983] } }, "httpsPorts"],
    [{ network: { httpsPorts: [0] } }, "httpsPorts"],
    [{ network: { httpsPorts: [65536] } }, "httpsPorts"],
    [{ network: { maskRequestHost: "exämple.com" } }, "maskRequestHost"],
    [{ network: { maskRequestHost: "a b" } }, "maskRequestHost"],
    [{ network: { egressProxy: { address: "no-port" } } }, "egressProxy.address"],
    [{ network: { egressProxy: { address: "10.0.0.1:1080" } } }, "internal address"],
    [{ network: { rules: { "*": [{}] } } }, "invalid rule host"],
    [{ network: { rules: { "a.*.com": [{}] } } }, "invalid rule host"],
    [{ network: { rules: { "a.com": [{ transform: { headers: { "bad header": "v" } } }] } } }, "headers"],
    [{ autoPauseMemory: false }, "autoPauseMemory"],
    [{ autoPause: true, autoPauseMemory: false, autoResume: { enabled: true } }, "autoPauseMemory"],
    [{ autoPause: false, onTimeout: "pause" }, "onTimeout"],
    [{ onTimeout: "kill", autoPauseMemory: false }, "autoPauseMemory"],
    [{ onTimeout: "pause", autoPauseMemory: false, autoResume: { enabled: true } }, "autoPauseMemory"],
    [{ onResume: "reboot", autoResume: { enabled: true } }, "onResume"],
    [{ onTimeout: "explode" }, "onTimeout"],
    [{ onResume: "explode" }, "onResume"],
    [{ volumeMounts: [{ name: "v", path: "relative" }] }, "volumeMounts.0.path"],
    [{ volumeMounts: [{ name: "v", path: "/a/../b" }] }, "volumeMounts.0.path"],
    [
      {
        volumeMounts: [
          { name: "v", path: "/a" },
          { name: "w", path: "/a" },
        ],
      },
      "volumeMounts.1.path",
    ],
    [{ iam: { tokens: { "{x}": { audience: "a", tokenType: "JWT-SVID" } } } }, "tokens"],
    [{ iam: { tokens: { "": { audience: "a", tokenType: "JWT-SVID" } } } }, "tokens"],
    [{ iam: { tokens: { "a\u0085": { audience: "a", tokenType: "JWT-SVID" } } } }, "tokens"],
    [{ iam: { tokens: { x: { audience: "a", tokenType: "JWT" } } } }, "tokenType"],
    [{ iam: { tokens: { x: { audience: "", tokenType: "JWT-SVID" } } } }, "audience"],
    [{ iam: { tokens: { x: { tokenType: "JWT-SVID" } } } }, "audience"],
    [{ iam: { tokens: { x: { audience: "a" } } } }, "tokenType"],
    [{ iam: { tokens: { x: null } } }, "tokens"],
    [
      {
        iam: {
          tokens: Object.fromEntries(
            ["a", "b", "c", "d", "e", "f"].map((each) => [each, { audience: "a", tokenType: "JWT-SVID" }]),
          ),
        },
      },
      "tokens",
    ],
    [{ envVars: { "A=B": "x" } }, "envVars"],
    [{ envVars: { A: "x\u0000y" } }, "A"],
    [{ metadata: { "a\nb": 5 } }, "metadata"],
    [{ templateID: "a/b/c" }, "template reference"],
    [{ templateID: "base:tag:tag" }, "template reference"],
  ])("%j is refused", async (body, words) => {
    const before = cluster.agent.starts.length;
    const answer = await create(body);
    expect(answer.status).toBe(400);
    expect((answer.body as { message: string }).message).toContain(words);
    expect(cluster.agent.starts.length).toBe(before);
  });

  test("every wrong volume mount is named by its index, in one error, and the right ones are not", async () => {
    expect((await cluster.ask("POST", "/volumes", { body: { name: "v" } })).status).toBe(201);
    const volumeMounts = [
      { name: "v", path: "relative" },
      { name: "v", path: "/right" },
      { name: "v", path: "/a/../b" },
      { name: "", path: "/c" },
      { name: "no volume", path: "/d/" },
      { name: "v", path: "/right" },
      { name: "x".repeat(129), path: "" },
    ];
    const answer = await create({ volumeMounts });
    const { message } = answer.body as { message: string };
    expect([answer.status, message.match(/volumeMounts\.\d\.\w+/g)]).toEqual([
      400,
      ["0.path", "2.path", "3.name", "4.name", "4.path", "5.path", "6.name", "6.path"].map(
        (at) => `volumeMounts.${at}`,
      ),
    ]);
  });

  test("a null inside a list or a map is a value, and refused", async () => {
    for (const [body, field] of [
      [{ metadata: { a: null } }, "metadata"],
      [{ envVars: { A: null } }, "envVars"],
      [{ network: { allowOut: [null] } }, "allowOut"],
      [{ volumeMounts: [null] }, "volumeMounts"],
      [{ autoResume: { enabled: null } }, "enabled"],
    ] as const) {
      const answer = await create(body);
      expect([answer.status, (answer.body as { message: string }).message]).toEqual([
        400,
        expect.stringContaining(field),
      ]);
    }
  });

  test("a null in an optional field is absent at any depth: in lists, in maps and beside other faults", async () => {
    const rules = { "example.com": [{ transform: null }], "a.example": [{ transform: { headers: null } }] };
    const network = { allowOut: null, rules, egressProxy: null, httpsPorts: null };
    const made = await create({ network, metadata: null, timeout: null, onTimeout: null, volumeMounts: null });
    expect(made.status, made.text).toBe(201);
    const { sandboxID } = made.body as { sandboxID: string };
    const read = (await cluster.ask("GET", `/sandboxes/${sandboxID}`)).body as { network: object; lifecycle: object };
    expect(read.network).toEqual({
      egressProxy: null,
      rules: { "example.com": [{}], "a.example": [{ transform: {} }] },
    });
    expect(read.lifecycle).toEqual({ autoResume: false, onTimeout: "kill" });
    expect((await create({ network: null, onTimeout: "explode" })).body).toMatchObject({
      code: 400,
      message: expect.stringContaining("onTimeout") as string,
    });
  });

  test.each(["-", "Ab", "../etc", "%2e%2e", "i_x", "i x"])("'%s' is no sandbox id", async (id) => {
    const answer = await cluster.ask("GET", `/sandboxes/${encodeURIComponent(id)}`);
    expect(answer.body).toMatchObject({ code: 400, message: "Invalid sandbox ID" });
  });

  test("an unknown template and an unknown tag are 404 in the contract's words", async () => {
    expect((await create({ templateID: "no-such" })).body).toMatchObject({
      code: 404,
      message: expect.stringContaining("template 'no-such' not found: list templates with") as string,
    });
    expect((await create({ templateID: "base:v9" })).body).toMatchObject({
      code: 404,
      message: "tag 'v9' does not exist for template 'base'",
    });
  });
});

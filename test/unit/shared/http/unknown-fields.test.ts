/** Fields of requests that no schema knows: the sentence that says which one was meant, and what is ignored. */

import { Type } from "typebox";
import { describe, expect, test } from "vitest";
import { publicApi } from "../../../../shared/api/public.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { nearest, slipOf, word } from "../../../../shared/http/fields/spelling.ts";
import { bodyReader, queryReader } from "../../../../shared/http/input.ts";

const CLOSED = ["0.0.0.0/0"];

function refusal(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof AppError && error.code === "bad_request") return error.message;
    throw error;
  }
  return "accepted";
}

const create = (body: object) => refusal(() => bodyReader(publicApi.create)?.({ templateID: "base", ...body }));
const update = (body: object) => refusal(() => bodyReader(publicApi.updateNetwork)?.(body));

describe("a create", () => {
  test.each<[object, string]>([
    [{ network: { deny_out: CLOSED } }, "`network.deny_out` is not a field: did you mean `denyOut`?"],
    [{ network: { denyout: CLOSED } }, "`network.denyout` is not a field: did you mean `denyOut`?"],
    [{ network: { "Deny-Out": CLOSED } }, "`network.Deny-Out` is not a field: did you mean `denyOut`?"],
    [
      { network: { allowPublicTrafic: false } },
      "`network.allowPublicTrafic` is not a field: did you mean `allowPublicTraffic`?",
    ],
    [{ network: { network: { denyOut: CLOSED } } }, "`network.network` is not a field: did you mean `network`?"],
    [
      { network: { egress: { denyOut: CLOSED } } },
      "`network.egress` is not a field: did you mean `denyOut`, without `egress` around it?",
    ],
    [
      { network: { allow_internet_access: false } },
      "`network.allow_internet_access` is not a field: did you mean `allow_internet_access`?",
    ],
    [
      { network: { blockEverything: true } },
      "`network.blockEverything` is not a field: `network` takes `allowOut`, `denyOut`, `egressProxy`, `rules`, `allowPublicTraffic`, `maskRequestHost`, `httpsPorts`",
    ],
    [
      { network: { egressProxy: { address: "p.example:1", denyOut: CLOSED } } },
      "`network.egressProxy.denyOut` is not a field: did you mean `network.denyOut`?",
    ],
    [{ network: { address: "p.example:1" } }, "`network.address` is not a field: did you mean `egressProxy.address`?"],
    [
      { network: { rules: { "a.example": [{ headers: {} }] } } },
      "`network.rules.a.example.0.headers` is not a field: did you mean `transform.headers`?",
    ],
    [
      { network: { rules: { "a.example": [{ transform: { Headers: {} } }] } } },
      "`network.rules.a.example.0.transform.Headers` is not a field: did you mean `headers`?",
    ],
    [{ denyOut: CLOSED }, "`denyOut` is not a field: did you mean `network.denyOut`?"],
    [{ deny_out: CLOSED }, "`deny_out` is not a field: did you mean `network.denyOut`?"],
    [{ allowInternetAccess: false }, "`allowInternetAccess` is not a field: did you mean `allow_internet_access`?"],
    [{ allow_internet_acces: false }, "`allow_internet_acces` is not a field: did you mean `allow_internet_access`?"],
    [{ auto_pause: true }, "`auto_pause` is not a field: did you mean `autoPause`?"],
    [{ timeoutMs: 5000 }, "`timeoutMs` is not a field: did you mean `timeout`, in seconds?"],
    [{ envs: { A: "b" } }, "`envs` is not a field: did you mean `envVars`?"],
    [
      { lifecycle: { onTimeout: "pause" } },
      "`lifecycle` is not a field: did you mean `autoPause`, `autoPauseMemory` and `autoResume`?",
    ],
    [{ options: { timeout: 60 } }, "`options` is not a field: did you mean `timeout`, without `options` around it?"],
    [
      { egress: { deny_out: CLOSED } },
      "`egress` is not a field: did you mean `network.denyOut`, without `egress` around it?",
    ],
    [
      { allowPlainHttp: true },
      "`allowPlainHttp` is not a field: did you mean `network.rules.*.[].transform.allowPlainHttp`?",
    ],
    [{ iam: { Tokens: {} } }, "`iam.Tokens` is not a field: did you mean `tokens`?"],
    [
      { iam: { tokens: { a: { audience: "b", tokenType: "JWT-SVID", ttl: 5 } } } },
      "`iam.tokens.a.ttl` is not a field: `iam.tokens.a` takes `audience`, `tokenType`",
    ],
    [
      { volumeMounts: [{ name: "v", path: "/v", readOnly: true }] },
      "`volumeMounts.0.readOnly` is not a field: `volumeMounts.0` takes `name`, `path`",
    ],
    [{ autoResume: { enabled: true, Enabled: false } }, "`autoResume.Enabled` is not a field: did you mean `enabled`?"],
    [
      { constructor: 1, network: { constructor: 1 } },
      "`network.constructor` is not a field: `network` takes `allowOut`, `denyOut`, `egressProxy`, `rules`, `allowPublicTraffic`, `maskRequestHost`, `httpsPorts`",
    ],
  ])("with %j is refused", (body, message) => {
    expect(create(body)).toBe(message);
  });

  test.each<[string, object]>([
    [
      "of a newer SDK",
      { gpuCount: 1, sandboxName: "a", name: "a", path: "/x", labels: { name: "a", path: "b" }, "": 1, _: 2 },
    ],
    ["in maps that are the caller's own", { metadata: { denyOut: "x", timeout: "y" }, envVars: { timeoutMs: "5" } }],
    ["in what the platform does not read", { mcp: { denyOut: [], any: { thing: 1 } } }],
    [
      "of every published SDK",
      { secure: true, allow_internet_access: true, autoPause: false, mcp: null, autoResume: { enabled: false } },
    ],
  ])("with fields %s is accepted", (_what, body) => {
    expect(create(body)).toBe("accepted");
  });

  test("gets nothing of what it does not understand", () => {
    const read = bodyReader(publicApi.create)?.({ templateID: "base", later: { a: 1 }, network: { denyOut: CLOSED } });
    expect(read).toEqual({ templateID: "base", network: { denyOut: CLOSED } });
  });

  test("with a very long name of a field is refused in a short sentence, at once", () => {
    const before = process.cpuUsage();
    expect(create({ network: { ["x".repeat(500_000)]: 1 } }).length).toBeLessThan(500);
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
  });
});

describe("an update of the network", () => {
  test.each<[object, string]>([
    [{ deny_out: CLOSED }, "`deny_out` is not a field: did you mean `denyOut`?"],
    [
      { network: { denyOut: CLOSED } },
      "`network` is not a field: did you mean `denyOut`, without `network` around it?",
    ],
    [{ allowInternetAccess: false }, "`allowInternetAccess` is not a field: did you mean `allow_internet_access`?"],
    [
      { deny: null },
      "`deny` is not a field: the request takes `allowOut`, `denyOut`, `egressProxy`, `rules`, `allow_internet_access`",
    ],
    [
      { allowPublicTraffic: false },
      "`allowPublicTraffic` is not a field: the request takes `allowOut`, `denyOut`, `egressProxy`, `rules`, `allow_internet_access`",
    ],
  ])("with %j is refused", (body, message) => {
    expect(update(body)).toBe(message);
  });
});

test.each<[keyof typeof publicApi, object, string]>([
  ["connect", { time_out: 5 }, "`time_out` is not a field: did you mean `timeout`?"],
  ["pause", { keepMemory: false }, "`keepMemory` is not a field: did you mean `memory`?"],
  ["fork", { Count: 3 }, "`Count` is not a field: did you mean `count`?"],
  ["refresh", { timeout: 60 }, "`timeout` is not a field: did you mean `duration`?"],
  [
    "createKey",
    { name: "a", expires_at: "2030-01-01T00:00:00Z" },
    "`expires_at` is not a field: did you mean `expiresAt`?",
  ],
  ["createKey", { name: "a", scope: ["read"] }, "`scope` is not a field: did you mean `scopes`?"],
  [
    "createProject",
    { name: "a", limits: { Sandboxes: 1 } },
    "`limits.Sandboxes` is not a field: did you mean `sandboxes`?",
  ],
  ["changeProject", { sandboxes: 1 }, "`sandboxes` is not a field: did you mean `limits.sandboxes`?"],
  ["collectBuilds", { dry_run: true }, "`dry_run` is not a field: did you mean `dryRun`?"],
  ["updateTemplate", { Public: false }, "`Public` is not a field: did you mean `public`?"],
  [
    "startBuild",
    { fromImage: "a", from_image_registry: {} },
    "`from_image_registry` is not a field: did you mean `fromImageRegistry`?",
  ],
  [
    "startBuild",
    { fromImageRegistry: { type: "registry", username: "a", password: "b", passwd: "c" } },
    "`fromImageRegistry.passwd` is not a field: did you mean `password`?",
  ],
  [
    "startBuild",
    { steps: [{ type: "COPY", files_hash: "a" }] },
    "`steps.0.files_hash` is not a field: did you mean `filesHash`?",
  ],
  ["deleteProject", { dryRun: true }, "`dryRun` is not a field: the request takes none"],
])("%s with %j is refused", (operation, body, message) => {
  expect(refusal(() => bodyReader(publicApi[operation])?.(body))).toBe(message);
});

test("steps of a build may have the options that SDKs leave in them", () => {
  const steps = [{ type: "COPY", args: [], force: false, forceUpload: true, resolveSymlinks: true, gzip: false }];
  expect(bodyReader(publicApi.startBuild)?.({ fromImage: "a", steps })).toEqual({
    fromImage: "a",
    steps: [{ type: "COPY", args: [], force: false }],
  });
});

test("a query parameter in another spelling is refused, and one of its own is ignored", () => {
  const read = queryReader(publicApi.list);
  expect(refusal(() => read?.({ State: "paused" }))).toBe("`State` is not a query parameter: did you mean `state`?");
  expect(refusal(() => read?.({ next_token: "x" }))).toContain("did you mean `nextToken`?");
  expect(refusal(() => read?.({ _: "1", utm: "2", limit: "5" }))).toBe("accepted");
});

test.each([
  [
    "state[0]",
    "PHP",
    "`state[0]` is not a query parameter: did you mean `state`, without brackets? (Comma-separated: ",
  ],
  [
    "state[]",
    "Rails",
    "`state[]` is not a query parameter: did you mean `state`, without brackets? (Comma-separated: ",
  ],
  ["metadata[user]", "qs", "did you mean `metadata`, without brackets? (k=v pairs joined by &, "],
  ["Metadata[user][name]", "axios", "did you mean `metadata`, without brackets?"],
  ["limit[]", "Faraday", "`limit[]` is not a query parameter: did you mean `limit`, without brackets?"],
])("the query parameter %s, as %s writes it, is refused with the form that is read", (name, _whose, message) => {
  expect(refusal(() => queryReader(publicApi.list)?.({ [name]: "x" }))).toContain(message);
});

test("a parameter with brackets that is no known one is ignored, as others are", () => {
  const read = queryReader(publicApi.list);
  expect(refusal(() => read?.({ "utm[source]": "x", "filter[0]": "y", "[]": "z" }))).toBe("accepted");
});

test("a field with brackets in the name is ignored in a body that newer clients may add to", () => {
  expect(create({ "envVars[NODE_ENV]": "x", "metadata[user]": "y" })).toBe("accepted");
});

test("bodies between the platform's programs are taken as their contracts say", () => {
  const body = Type.Object({ a: Type.Optional(Type.Integer()) });
  const read = bodyReader({ method: "POST", path: "/x", summary: "", tag: "", access: "node", body, status: 204 });
  expect(read?.({ A: 1 })).toEqual({ A: 1 });
});

describe("spelling", () => {
  test.each([
    ["denyOut", "deny_out"],
    ["denyOut", "DENYOUT"],
    ["allow_internet_access", "allowInternetAccess"],
    ["templateID", "template-id"],
  ])("%s and %s are one word", (a, b) => {
    expect(word(a)).toBe(word(b));
  });

  test("the nearest name has the fewest edits; a word that shares nothing has none", () => {
    expect(nearest("alowOut", ["denyOut", "allowOut"])).toBe("allowOut");
    expect(nearest("denOyut", ["denyOut", "allowOut"])).toBe("denyOut");
    expect(nearest("blockAll", ["denyOut", "allowOut"])).toBeUndefined();
    expect(nearest("", ["a"])).toBeUndefined();
  });

  test("a slip is one letter, not the first, of a name that is long enough", () => {
    expect(slipOf("allow_internet_acess", ["allow_internet_access"])).toBe("allow_internet_access");
    expect(slipOf("timeuot", ["timeout"])).toBe("timeout");
    expect(slipOf("gpuCount", ["cpuCount"])).toBeUndefined();
    expect(slipOf("secured", ["secure"])).toBeUndefined();
    expect(slipOf("autoResumption", ["autoResume"])).toBeUndefined();
  });
});

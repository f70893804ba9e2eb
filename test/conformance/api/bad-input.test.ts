/** Wrong input through plain HTTP: each gets a 400 with a message that names the field, and leaves nothing behind. */

import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { sharedSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const base = { templateID: "base" };

describe("create", () => {
  test.each<[string, unknown]>([
    ["templateID", {}],
    ["templateID", { templateID: 7 }],
    ["templateID", { templateID: "" }],
    ["templateID", { templateID: "x".repeat(2000) }],
    ["emplate", { templateID: "../etc" }],
    ["imeout", { ...base, timeout: 0 }],
    ["imeout", { ...base, timeout: -1 }],
    ["imeout", { ...base, timeout: 1.5 }],
    ["timeout", { ...base, timeout: "60" }],
    ["imeout", { ...base, timeout: 99_999_999 }],
    ["metadata", { ...base, metadata: { a: 1 } }],
    ["metadata", { ...base, metadata: "x" }],
    ["metadata", { ...base, metadata: ["x"] }],
    ["envVars", { ...base, envVars: { A: null } }],
    ["envVars", { ...base, envVars: 3 }],
    ["allow_internet_access", { ...base, allow_internet_access: "yes" }],
    ["autoPause", { ...base, autoPause: "yes" }],
    ["autoResume", { ...base, autoResume: true }],
    ["network", { ...base, network: [] }],
    ["httpsPorts", { ...base, network: { httpsPorts: [49_983] } }],
    ["httpsPorts", { ...base, network: { httpsPorts: [0] } }],
    ["httpsPorts", { ...base, network: { httpsPorts: [70_000] } }],
    ["maskRequestHost", { ...base, network: { maskRequestHost: "ü/x" } }],
    ["allowPublicTraffic", { ...base, network: { allowPublicTraffic: 1 } }],
    ["example.com", { ...base, network: { denyOut: ["example.com"] } }],
    ["ALL_TRAFFIC", { ...base, network: { allowOut: ["example.com"] } }],
    ["volumeMounts", { ...base, volumeMounts: [{ name: "v", path: "relative" }] }],
    ["onTimeout", { ...base, onTimeout: "explode" }],
    ["autoPauseMemory", { ...base, autoPauseMemory: false }],
  ])("a wrong %s (%j) is refused", async (field, body) => {
    const reply = await api(platform, "POST", "/v2/sandboxes", { body });
    expect([reply.status, (reply.json as { code: number }).code]).toEqual([400, 400]);
    expect((reply.json as { message: string }).message).toContain(field);
  });

  test.each<[string, string]>([
    ["nothing", ""],
    ["half a document", '{"templateID":'],
    ["a list", "[]"],
    ["a text", '"base"'],
    ["null", "null"],
  ])("a body that is %s is refused", async (_, body) => {
    const reply = await api(platform, "POST", "/v2/sandboxes", { body });
    expect(reply.status).toBe(400);
    expect(reply.json).toMatchObject({ code: 400, message: expect.any(String) as string });
  });

  test("a body that is far too long is refused, or cut while it is sent, and other requests are not affected", async () => {
    const body = { ...base, metadata: { a: "x".repeat(20 << 20) } };
    const status = await api(platform, "POST", "/v2/sandboxes", { body }).then(
      (reply) => reply.status,
      (error: Error) => error.message,
    );
    expect([413, "fetch failed"]).toContain(status);
    expect((await api(platform, "GET", "/health")).status).toBe(204);
  });

  test("refused creates leave no sandbox", async () => {
    // Other sandboxes of the project may end meanwhile.
    const metadata = { refused: randomUUID() };
    const create = async (body: object) =>
      (await api(platform, "POST", "/v2/sandboxes", { body: { ...body, metadata } })).status;
    expect([await create({ ...base, timeout: 0 }), await create({ templateID: "no-such" })]).toEqual([400, 404]);
    const of = encodeURIComponent(new URLSearchParams(metadata).toString());
    const listed = await api(platform, "GET", `/v2/sandboxes?limit=1&metadata=${of}`);
    expect([listed.status, listed.headers.get("x-total-count")]).toEqual([200, "0"]);
  });
});

describe("operations on a sandbox", () => {
  const sandbox = sharedSandbox();

  test.each<[string, string, unknown, string]>([
    ["POST", "/timeout", {}, "timeout"],
    ["POST", "/timeout", { timeout: "60" }, "timeout"],
    ["POST", "/refreshes", { duration: -1 }, "duration"],
    ["POST", "/refreshes", { duration: 3601 }, "duration"],
    ["POST", "/connect", {}, "timeout"],
    ["POST", "/fork", { count: 0 }, "count"],
    ["POST", "/fork", { count: 101 }, "count"],
    ["POST", "/fork", { timeout: 0 }, "imeout"],
    ["POST", "/pause", { memory: "yes" }, "memory"],
    ["PUT", "/network", { denyOut: ["example.com"] }, "example.com"],
    ["POST", "/snapshots", { name: "Not A Name!" }, "name"],
  ])("%s %s with %j is refused", async (method, path, body, field) => {
    const reply = await api(platform, method, `/sandboxes/${sandbox().sandboxId}${path}`, { body });
    expect([reply.status, (reply.json as { code: number }).code]).toEqual([400, 400]);
    expect((reply.json as { message: string }).message).toContain(field);
  });

  test.each([0, -5, "5", 1.5])("connect with the time-out %j is refused", async (timeout) => {
    const reply = await api(platform, "POST", `/v2/sandboxes/${sandbox().sandboxId}/connect`, { body: { timeout } });
    expect(reply.status).toBe(400);
    expect((reply.json as { message: string }).message).toContain("imeout");
  });

  test.each(["Not-Valid!", "UPPER", "a%2Fb", "%00", "..%2F..%2Fhealth"])(
    "the malformed id %s is refused",
    async (id) => {
      const reply = await api(platform, "GET", `/sandboxes/${id}`);
      expect([400, 404]).toContain(reply.status);
      expect(reply.json).toMatchObject({ code: reply.status });
    },
  );

  test.each(["start=x", "end=-1", "start=1e99"])("metrics with ?%s are refused", async (query) => {
    const reply = await api(platform, "GET", `/sandboxes/${sandbox().sandboxId}/metrics?${query}`);
    expect(reply.status).toBe(400);
  });

  test("metrics of no sandbox, and of too many, are refused", async () => {
    expect((await api(platform, "GET", "/sandboxes/metrics")).status).toBe(400);
    const many = Array.from({ length: 101 }, (_, index) => `i${index}`).join(",");
    expect((await api(platform, "GET", `/sandboxes/metrics?sandbox_ids=${many}`)).status).toBe(400);
  });

  test.each(["limit=1001", "limit=-1", "direction=up", "level=loud", `search=${"x".repeat(257)}`])(
    "logs with ?%s are refused",
    async (query) => {
      const reply = await api(platform, "GET", `/v2/sandboxes/${sandbox().sandboxId}/logs?${query}`);
      expect(reply.status).toBe(400);
    },
  );
});

describe("routes of earlier versions", () => {
  test("retired routes are gone", async () => {
    expect([404, 410]).toContain((await api(platform, "POST", "/templates", { body: {} })).status);
    const token = await api(platform, "POST", "/access-tokens", { body: { name: "x" } });
    expect([401, 410]).toContain(token.status);
  });
});

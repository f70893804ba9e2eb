/** The shared core: schema checks and their messages, settings, ids, states, the committed API description. */

import { readFile } from "node:fs/promises";
import { Type } from "typebox";
import { describe, expect, test } from "vitest";
import { OrchestratorConfig } from "../../../orchestrator/config.ts";
import { map, messages, nullable } from "../../../shared/api/common.ts";
import { describedApi } from "../../../shared/api/public.ts";
import { AppError, catalogue, fromBody, toBody } from "../../../shared/http/errors.ts";
import { fromUrl } from "../../../shared/http/fields/url-values.ts";
import { toOpenApi } from "../../../shared/http/openapi.ts";
import { check } from "../../../shared/http/validate.ts";
import { envdToken, fileSignature, hashApiKey, isApiKey, newApiKey, parseSandboxId } from "../../../shared/ids.ts";
import { ConfigError, readConfig } from "../../../shared/program/config.ts";
import { createLog } from "../../../shared/program/log.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import { mayMove, type SandboxState, statesBefore } from "../../../shared/states/sandbox-state.ts";

describe("checks name the field", () => {
  const schema = Type.Object({
    a: Type.Integer({ minimum: 1, ...messages({ minimum: "a must be positive" }) }),
    deep: Type.Optional(nullable(Type.Object({ b: Type.String({ maxLength: 2 }) }))),
    map: Type.Optional(map(Type.String(), { names: Type.String({ minLength: 1, maxLength: 3 }), maxProperties: 2 })),
    kind: Type.Optional(Type.Enum(["x", "y"])),
  });
  const checked = check(schema, "body");
  const parse = (value: unknown) => checked.parse(value);

  test.each<[unknown, string]>([
    [{}, "body field 'a' is required"],
    [{ a: "1" }, "body field 'a' must be integer"],
    [{ a: 0 }, "a must be positive"],
    [{ a: 1, deep: { b: "long" } }, "body field 'deep.b' must not have more than 2 characters"],
    [{ a: 1, deep: 5 }, "body field 'deep' has the wrong type or value"],
    [{ a: 1, map: { k: 5 } }, "body field 'map.k' must be string"],
    [{ a: 1, map: { "": "v" } }, "body field 'map' has a name that is empty, too long or has illegal characters"],
    [{ a: 1, map: { "a\nb": 5 } }, "body field 'map.a\nb' must be string"],
    [{ a: 1, kind: "z" }, "body field 'kind' must be one of x, y"],
    [null, "body must be object"],
  ])("%j is refused: %s", (value, message) => {
    expect(() => parse(value)).toThrow(new AppError("bad_request", message));
  });

  test("fields without a description pass", () => {
    expect(parse({ a: 1, more: [] })).toEqual({ a: 1, more: [] });
  });
});

test("query values are converted to the type of their schema, exactly or not at all", () => {
  const schema = Type.Object({ n: Type.Integer(), b: Type.Boolean(), s: Type.String() });
  expect(fromUrl(schema, { n: "12", b: "true", s: ["a", "b"] })).toEqual({ n: 12, b: true, s: "a,b" });
  expect(fromUrl(schema, { n: "1.5", b: "yes", s: "5" })).toEqual({ n: "1.5", b: "yes", s: "5" });
  expect(fromUrl(schema, { n: "" })).toEqual({ n: "" });
});

test.each([
  ["Python's", "True", "False"],
  ["PHP's", "1", "0"],
  ["JavaScript's", "true", "false"],
])("a switch in a query is taken in %s words", (_whose, on, off) => {
  const schema = Type.Object({ on: Type.Boolean(), off: Type.Boolean(), n: Type.Integer() });
  expect(fromUrl(schema, { on, off, n: "1" })).toEqual({ on: true, off: false, n: 1 });
});

describe("settings", () => {
  const least = {
    SVC_ADMIN_TOKEN: "0123456789abcdef",
    SVC_NODE_KEY: "0123456789abcdef",
    SVC_SEED: "0123456789abcdef",
    SVC_ENCRYPTION_KEY: "0123456789abcdef",
  };

  test("have defaults, are frozen, and take numbers from text", () => {
    const config = readConfig(OrchestratorConfig, { ...least, SVC_API_PORT: "4000" });
    expect(config).toMatchObject({ apiPort: 4000, edgePort: 3002, poolSize: 3 });
    expect(Object.isFrozen(config)).toBe(true);
  });

  test("every problem is reported at once, with the nearest name", () => {
    const environment = { SVC_API_PORTT: "1", SVC_EDGE_PORT: "abc", SVC_ADMIN_TOKEN: "short" };
    try {
      readConfig(OrchestratorConfig, environment);
      expect.unreachable();
    } catch (error) {
      const { problems } = error as ConfigError;
      const text = problems.join("\n");
      expect(text).toContain("SVC_API_PORTT is not a setting (did you mean SVC_API_PORT?)");
      expect(text).toContain("SVC_EDGE_PORT");
      expect(text).toContain("SVC_ADMIN_TOKEN");
      expect(text).toContain("SVC_SEED");
    }
  });

  test("a secret may be in a file", () => {
    expect(() => readConfig(OrchestratorConfig, { ...least, SVC_SEED_FILE: "/no/such/file" })).toThrow("cannot read");
  });
});

describe("ids", () => {
  test("keys are well-formed and have the same hash under both prefixes", () => {
    const key = newApiKey();
    expect(isApiKey(key)).toBe(true);
    expect(hashApiKey(key)).toBe(hashApiKey(key.replace("svc_", "e2b_")));
    expect(["svc_", "svc_ABC", "key", `${key}0`, key.toUpperCase()].some(isApiKey)).toBe(false);
  });

  test("sandbox ids are read without their client id, and no other text is accepted", () => {
    expect(parseSandboxId("iabc-6532622b")).toBe("iabc");
    expect(["", "-x", "iA", "i.b", "i/b"].map(parseSandboxId)).toEqual(Array(5).fill(undefined));
  });

  test("tokens are stable for an id and differ between ids and seeds", () => {
    expect(envdToken("seed", "i1")).toBe(envdToken("seed", "i1"));
    expect(new Set([envdToken("seed", "i1"), envdToken("seed", "i2"), envdToken("other", "i1")]).size).toBe(3);
  });

  test("file signatures are those of the published clients", () => {
    const parts = {
      path: "hello.txt",
      operation: "read",
      username: "user",
      token: "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0",
    } as const;
    expect(fileSignature(parts)).toBe("v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
  });
});

test.each([
  ["ENOSPC", "the disk of the service is full: its operator must make room"],
  ["EDQUOT", "the disk of the service is full: its operator must make room"],
  ["SQLITE_FULL", "the disk of the database is full: its operator must make room"],
  ["53100", "the disk of the database is full: its operator must make room"],
])("%s is reported as a full disk, without the path", (code, message) => {
  const error = AppError.from(Object.assign(new Error("write /var/lib/x"), { code }));
  expect([error.status, error.message]).toEqual([507, message]);
});

test.each([
  ["SQLITE_IOERR_WRITE", "its disk reports an input/output error"],
  ["SQLITE_NOMEM", "it is out of memory"],
  ["SQLITE_IOERR_NOMEM", "it is out of memory"],
  ["SQLITE_READONLY_DBMOVED", "it is read-only"],
  ["25006", "it is read-only"],
  ["SQLITE_CORRUPT_INDEX", "it is damaged"],
  ["SQLITE_CANTOPEN", "its file cannot be opened"],
])("%s is reported with its cause in words, also behind another error", (code, cause) => {
  const failed = Object.assign(new Error("/var/lib/x"), { code });
  for (const error of [AppError.from(failed), AppError.from(new Error("query failed", { cause: failed }))]) {
    expect([error.status, error.message]).toEqual([503, expect.stringContaining(cause)]);
    expect(error.message).not.toContain("/var/lib");
  }
});

test("errors come back over the wire as they were", () => {
  for (const code of Object.keys(catalogue) as (keyof typeof catalogue)[]) {
    if (code === "unauthorized") continue;
    const error = new AppError(code, "why");
    expect(fromBody(error.status, JSON.parse(JSON.stringify(toBody(error))), "x")).toMatchObject({
      code,
      message: "why",
    });
  }
  expect(fromBody(502, "<html>", "node n1")).toMatchObject({ code: "node_unreachable" });
});

test("a token that another program of the platform refuses is not the caller's own: 503, in any form of the refusal", () => {
  const refusal = toBody(new AppError("unauthorized", "the orchestrator's token is missing or wrong"));
  const answers = [refusal, { code: 401, message: "no" }, "<html>", undefined].map((body) => [401, body] as const);
  for (const [status, body] of [...answers, [403, refusal] as const, [503, { ...refusal, code: 503 }] as const]) {
    const error = fromBody(status, body, "node n1");
    expect([error.code, error.status]).toEqual(["unavailable", 503]);
    expect(error.message).toContain("node n1 refuses the token of the platform's own program");
  }
});

test("the state gone is final, and a sandbox in every other state can be killed", () => {
  const states: SandboxState[] = ["starting", "running", "pausing", "paused", "snapshotting", "rewinding", "killing"];
  for (const state of states) {
    expect(mayMove("gone", state)).toBe(false);
    if (state !== "killing") expect(statesBefore("killing")).toContain(state);
  }
});

test("secrets never reach a log line, at any of the depths they turn up at", () => {
  const lines: string[] = [];
  const log = createLog({ component: "t", destination: { write: (line: string) => void lines.push(line) } });
  const secret = "do-not-tell";
  for (const name of [
    "apiKey",
    "accessToken",
    "nodeToken",
    "nodeKey",
    "orchestratorToken",
    "seed",
    "encryptionKey",
    "envs",
    "envVars",
    "key",
  ]) {
    log.info({ [name]: secret, a: { [name]: secret, b: { [name]: secret } } }, "line");
  }
  log.info({ headers: { "x-api-key": secret, "x-admin-token": secret, authorization: secret } }, "line");
  expect(lines.join("")).not.toContain(secret);
  expect(lines.join("")).toContain("[redacted]");
});

test("undo steps run backwards, once, and a failing one does not keep the others", async () => {
  const done: string[] = [];
  const teardown = new Teardown(createLog({ component: "t", level: "silent" }));
  teardown.add("a", () => void done.push("a"));
  teardown.add("b", () => {
    throw new Error("broken");
  });
  teardown.add("c", () => void done.push("c"));
  await Promise.all([teardown.run(), teardown.run()]);
  teardown.add("late", () => void done.push("late"));
  await teardown.run();
  expect(done).toEqual(["c", "a", "late"]);
});

test("the committed API description is fresh", async () => {
  const text = await readFile(new URL("../../../shared/openapi.json", import.meta.url), "utf8");
  expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(toOpenApi(describedApi))));
});

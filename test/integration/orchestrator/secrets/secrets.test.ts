/** Secrets through the front door: limits, names, versions, lists, and rules that name them. No answer has a value. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as e2b from "e2b";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLog } from "../../../../shared/program/log.ts";
import { type Answer, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { filesWith } from "../../../support/store/files-with.ts";

let cluster: Cluster;
let logged = "";
const log = createLog({
  component: "test",
  level: "trace",
  destination: { write: (line: string) => void (logged += line) },
});
beforeAll(async () => {
  cluster = await startCluster({ log, config: { maxProjectSecrets: 12 } });
});
afterAll(() => cluster.stop());

const post = (path: string, body: unknown, key?: string) =>
  cluster.ask("POST", path, { body, ...(key === undefined ? {} : { key }) });
const create = (body: object, key?: string) => post("/secrets", { value: "v", ...body }, key);
const message = ({ body }: Answer) => (body as { message: string }).message;
/** A project of its own, so that limits and lists of one test do not meet those of another. */
const project = async (name: string) => (await cluster.addProject(name)).key;

test("a secret is created, read by id and by name in any case, changed and deleted, and no answer has its value", async () => {
  const answers: Answer[] = [];
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await cluster.ask(method, path, body === undefined ? {} : { body });
    answers.push(answer);
    return answer;
  };
  const created = await ask("POST", "/secrets", { name: "Api-KEY_1", value: "hunter2-one", metadata: { a: "b" } });
  expect(created.status, created.text).toBe(201);
  const { secretID, createdAt } = created.body as { secretID: string; createdAt: string };
  expect(secretID).toMatch(/^sec_[a-z0-9]{24}$/);
  const first = {
    secretID,
    name: "api-key_1",
    currentVersion: 1,
    metadata: { a: "b" },
    createdAt,
    updatedAt: createdAt,
    useCount: 0,
    lastUsedAt: null,
  };
  expect(created.body).toEqual(first);
  for (const reference of [secretID, "api-key_1", "API-KEY_1"]) {
    expect((await ask("GET", `/secrets/${reference}`)).body).toEqual(first);
  }
  expect((await ask("POST", "/secrets", { name: "API-key_1", value: "hunter2-two" })).status).toBe(409);
  const kept = await ask("POST", "/secrets/api-key_1", { value: "hunter2-three" });
  expect(kept.body).toMatchObject({ currentVersion: 2, metadata: { a: "b" } });
  const cleared = await ask("POST", `/secrets/${secretID}`, { value: "hunter2-four", metadata: {} });
  expect(cleared.body).toMatchObject({ secretID, currentVersion: 3, metadata: {}, createdAt });
  expect((await ask("DELETE", "/secrets/Api-Key_1")).status).toBe(204);
  for (const [method, body] of [["GET"], ["DELETE"], ["POST", { value: "hunter2-five" }]] as const) {
    expect((await ask(method, `/secrets/${secretID}`, body)).body).toMatchObject({ code: 404 });
  }
  for (const { headers, text } of answers) {
    expect(headers.get("cache-control")).toBe("no-store");
    expect(text).not.toContain("hunter2");
  }
  expect(logged).not.toContain("hunter2");
  expect(await filesWith(cluster.folder, "hunter2")).toEqual([]);
  expect(await cluster.database.stored()).not.toContain("hunter2");
});

const many = (count: number, value: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value]));

describe("the limits of a secret", () => {
  test.each<[string, object, string]>([
    ["an empty name", { name: "" }, "body field 'name' must not have fewer than 1 characters"],
    ["a long name", { name: "n".repeat(129) }, "body field 'name' must not have more than 128 characters"],
    ["a name with a space", { name: "a b" }, "body field 'name' must be of a-z"],
    ["a name like an id", { name: "sec_a" }, "must not begin with sec_"],
    ["a name like an id in capitals", { name: "SeC_a" }, "must not begin with sec_"],
    ["no value", { name: "a", value: undefined }, "body field 'value' is required"],
    ["an empty value", { name: "a", value: "" }, "body field 'value' must not have fewer than 1 characters"],
    ["a value of 65537 characters", { name: "a", value: "hunter2".padEnd(65_537, "x") }, "65536"],
    ["a value of 65538 bytes", { name: "a", value: "ü".repeat(32_769) }, "must have at most 65536 bytes"],
    ["half a character", { name: "a", value: "hunter2\ud800" }, "body field 'value' has half of a surrogate pair"],
    ["a value that is no text", { name: "a", value: ["hunter2"] }, "body field 'value' must be string"],
    ["33 entries of metadata", { name: "a", metadata: many(33, "v") }, "body field 'metadata'"],
    ["a metadata key of 129 characters", { name: "a", metadata: { ["k".repeat(129)]: "v" } }, "'metadata' has a name"],
    ["a metadata key of 130 bytes", { name: "a", metadata: { ["ü".repeat(65)]: "v" } }, "a key of more than 128 bytes"],
    ["an empty metadata key", { name: "a", metadata: { "": "v" } }, "'metadata' has a name that is empty"],
    ["a metadata value of 1026 bytes", { name: "a", metadata: { k: "ü".repeat(513) } }, "more than 1024 bytes"],
    ["metadata of 8193 bytes", { name: "a", metadata: { ...many(8, "v".repeat(1022)), x: "" } }, "at most 8192 bytes"],
    ["metadata that is no text", { name: "a", metadata: { k: 5 } }, "body field 'metadata.k' must be string"],
  ])("%s is refused with 400", async (_, body, words) => {
    const answer = await create(body);
    expect([answer.status, message(answer)]).toEqual([400, expect.stringContaining(words)]);
    expect(answer.text).not.toContain("hunter2");
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  test.each<[string, object]>([
    ["a name of 128 characters", { name: "N".repeat(128) }],
    ["a value of 65536 bytes", { name: "v1", value: "ü".repeat(32_768) }],
    ["metadata of 8192 bytes", { name: "m1", metadata: many(8, "v".repeat(1022)) }],
    ["32 entries of metadata", { name: "m2", metadata: many(32, "") }],
    ["metadata that is null", { name: "m3", metadata: null }],
  ])("%s is accepted", async (_, body) => {
    const answer = await create(body);
    expect(answer.status, answer.text).toBe(201);
  });

  test("a body of more than 512 KiB is refused with 413, and one of 512 KiB is read", async () => {
    const padded = (bytes: number) => `{"name":"a","value":"","pad":"${"x".repeat(bytes - 32)}"}`;
    expect([padded(512 * 1024).length, (await post("/secrets", padded(512 * 1024))).status]).toEqual([524_288, 400]);
    const answer = await post("/secrets", padded(512 * 1024 + 1));
    expect([answer.status, answer.headers.get("cache-control")]).toEqual([413, "no-store"]);
  });

  test("a project keeps no more secrets than its limit", async () => {
    const key = await project("full");
    for (let index = 0; index < 12; index++) expect((await create({ name: `n${index}` }, key)).status).toBe(201);
    const answer = await create({ name: "more" }, key);
    expect([answer.status, message(answer)]).toEqual([403, expect.stringContaining("limit of 12 secrets")]);
  });
});

test("refusals before the handler cannot be stored by caches either", async () => {
  for (const headers of [{}, { "x-api-key": "svc_wrong" }]) {
    const answer = await cluster.ask("POST", "/secrets", { key: null, headers, body: "{" });
    expect([answer.status, answer.headers.get("cache-control")]).toEqual([401, "no-store"]);
  }
  const broken = await cluster.ask("POST", "/secrets", { body: '{"value":"hunter2' });
  expect([broken.status, broken.headers.get("cache-control")]).toEqual([400, "no-store"]);
  expect(broken.text).not.toContain("hunter2");
});

test("a project sees only its own secrets, and its names are free in another", async () => {
  const [one, other] = [await project("one"), await project("other")];
  const { secretID } = (await create({ name: "shared" }, one)).body as { secretID: string };
  for (const reference of [secretID, "shared"]) {
    for (const method of ["GET", "DELETE"]) {
      expect((await cluster.ask(method, `/secrets/${reference}`, { key: other })).status).toBe(404);
    }
    expect((await post(`/secrets/${reference}`, { value: "x" }, other)).status).toBe(404);
  }
  expect((await create({ name: "shared" }, other)).status).toBe(201);
  expect((await cluster.ask("GET", "/secrets", { key: other })).body).toHaveLength(1);
});

test.each(["no-such", "sec_abc", "a%20b", "%F0%9F%92%A5", "a".repeat(300)])(
  "the reference %s is no secret: 404",
  async (reference) => {
    const answer = await cluster.ask("GET", `/secrets/${reference}`);
    expect(answer.body).toMatchObject({ code: 404, message: "the project has no such secret" });
  },
);

test("secrets are listed with the newest first, and a page continues after the secret at its end was deleted", async () => {
  const key = await project("lists");
  const names = ["a", "b", "c", "d", "e"];
  for (const name of names) expect((await create({ name }, key)).status).toBe(201);
  const list = (query: string) => cluster.ask("GET", `/secrets${query}`, { key });
  const named = ({ body }: Answer) => (body as { name: string }[]).map(({ name }) => name);
  const all = named(await list(""));
  expect([...all].sort()).toEqual(names);
  const first = await list("?limit=2");
  expect(named(first)).toEqual(all.slice(0, 2));
  const [, last = ""] = all;
  expect((await cluster.ask("DELETE", `/secrets/${last}`, { key })).status).toBe(204);
  const rest = await list(`?limit=3&nextToken=${first.headers.get("x-next-token") ?? ""}`);
  expect(named(rest)).toEqual(all.slice(2));
  expect(rest.headers.get("x-next-token")).toBeNull();
  for (const query of ["?limit=0", "?limit=101", "?nextToken=zzz"]) expect((await list(query)).status).toBe(400);
});

test("every one of many concurrent new versions is counted once", async () => {
  const key = await project("versions");
  await create({ name: "v" }, key);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => post("/secrets/v", { value: `${index}` }, key)),
  );
  const versions = answers.map(({ body }) => (body as { currentVersion: number }).currentVersion);
  expect(versions.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 2));
});

const rules = (value: string) => ({ rules: { "api.test": [{ transform: { headers: { "X-Key": value } } }] } });

describe("rules with placeholders", () => {
  const made = async (network: object, key: string, path = "/v2/sandboxes", more: object = {}) =>
    post(path, { templateID: "base", network, ...more }, key);

  test.each(["/sandboxes", "/v2/sandboxes"])("%s refuses a secret that the project does not have", async (path) => {
    const key = await project("unknown");
    await create({ name: "theirs" });
    for (const value of ["Bearer ${e2b.secrets.Theirs}", "${svc.secrets.theirs}"]) {
      const answer = await made(rules(value), key, path);
      expect([answer.status, message(answer)]).toEqual([400, expect.stringContaining("no secret 'theirs'")]);
    }
    const token = await made(rules("${e2b.identity.tokens.Cloud}"), key, path);
    expect([token.status, message(token)]).toEqual([400, expect.stringContaining("'iam.tokens' has no token 'Cloud'")]);
  });

  test("a known secret is accepted in any case, and reads show the placeholder", async () => {
    const key = await project("known");
    await create({ name: "mine", value: "hunter2-mine" }, key);
    const answer = await made(rules("Bearer ${svc.secrets.MINE}"), key);
    expect(answer.status, answer.text).toBe(201);
    const { sandboxID } = answer.body as { sandboxID: string };
    expect(cluster.agent.starts.at(-1)?.body.egress.rules).toEqual([
      { host: "api.test", headers: { "X-Key": "Bearer ${svc.secrets.MINE}" } },
    ]);
    const put = (network: object) => cluster.ask("PUT", `/sandboxes/${sandboxID}/network`, { key, body: network });
    const wrong = await put(rules("${e2b.secrets.other}"));
    expect([wrong.status, message(wrong)]).toEqual([400, expect.stringContaining("no secret 'other'")]);
    expect((await put(rules("${e2b.secrets.mine}"))).status).toBe(204);
    const fork = () => post(`/sandboxes/${sandboxID}/fork`, { timeout: 60 }, key);
    expect((await fork()).status).toBe(201);
    expect((await cluster.ask("DELETE", "/secrets/mine", { key })).status).toBe(204);
    // A fork is a new sandbox; a resume keeps the rules, whose requests then fail.
    const refused = await fork();
    expect([refused.status, message(refused)]).toEqual([400, expect.stringContaining("no secret 'mine'")]);
    expect((await post(`/sandboxes/${sandboxID}/pause`, {}, key)).status).toBe(204);
    expect((await post(`/v2/sandboxes/${sandboxID}/connect`, {}, key)).status).toBe(201);
    expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`, { key })).status).toBe(204);
  });
});

test("the published SDK creates, lists, changes and destroys secrets", async () => {
  const { Secret, SecretNotFoundError } = e2b;
  const opts = { apiUrl: cluster.url, apiKey: `e2b_${(await project("sdk")).slice(4)}` };
  const created = await Secret.create("OpenAI", "hunter2-sdk", { ...opts, metadata: { team: "blue" } });
  expect(created).toMatchObject({ name: "openai", version: 1, metadata: { team: "blue" } });
  expect(Secret.fill("OpenAI")).toBe("${e2b.secrets.OpenAI}");
  expect(await Secret.update(created.secretId, "hunter2-new", opts)).toMatchObject({ version: 2 });
  expect(await Secret.exists("openai", opts)).toBe(true);
  await Secret.create("second", "v", opts);
  const pages = Secret.list({ ...opts, limit: 1 });
  const seen: string[] = [];
  while (pages.hasNext) seen.push(...(await pages.nextItems()).map(({ name }) => name));
  expect(seen.sort()).toEqual(["openai", "second"]);
  expect([await Secret.destroy("openai", opts), await Secret.destroy("openai", opts)]).toEqual([true, false]);
  await expect(Secret.getInfo("openai", opts)).rejects.toThrow(SecretNotFoundError);
});

test("without a key every change is refused with 403, and with a damaged key file with 503", async () => {
  const other = await startCluster({ agents: 0 });
  try {
    const put = () => other.ask("POST", "/secrets", { body: { name: "a", value: "hunter2" } });
    const file = join(other.folder, "secrets.key");
    const key = await readFile(file, "utf8");
    await writeFile(file, "nonsense\n");
    const damaged = await put();
    expect([damaged.status, damaged.text.includes("hunter2")]).toEqual([503, false]);
    await writeFile(file, key);
    expect((await put()).status).toBe(201);
    await other.restart({ secretsKeyFile: undefined } as never);
    expect((await other.ask("POST", "/secrets/a", { body: { value: "b" } })).status).toBe(403);
    expect((await other.ask("GET", "/secrets/a")).status).toBe(200);
  } finally {
    await other.stop();
  }
});

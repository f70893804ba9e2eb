/** The audit log through the API: what each kind of request leaves in it, who reads it, and how it is paged. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuditEntry } from "../../../../shared/api/audit.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Answer, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({
    config: { rateLimitWritePerSecond: 10_000, rateLimitCreatePerSecond: 10_000, rateLimitFailedAuthPerMinute: 1_000 },
  });
});
afterAll(() => cluster.stop());

const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };

async function log(query: string): Promise<AuditEntry[]> {
  const answer = await cluster.ask("GET", `/admin/audit?order=asc&${query}`, admin);
  expect(answer.status).toBe(200);
  return answer.body as AuditEntry[];
}

/** The entries of one request, found by the id in its answer. */
async function entriesOf(answer: Answer): Promise<AuditEntry[]> {
  return log(`requestID=${answer.headers.get("x-request-id") ?? ""}`);
}

async function createKey(name: string): Promise<Answer> {
  return cluster.ask("POST", "/api-keys", {
    key: null,
    headers: { ...admin.headers, "x-team-id": cluster.teamId },
    body: { name },
  });
}

describe("a request that changes something once", () => {
  test("leaves one entry that says who did what to which object", async () => {
    const made = await createKey("for the log");
    const { id, key } = made.body as { id: string; key: string };
    expect(await entriesOf(made)).toMatchObject([
      {
        projectID: cluster.teamId,
        actor: { kind: "admin", id: null, mask: null },
        action: "createKey",
        object: { kind: "key", id },
        result: "done",
        address: "127.0.0.1",
        refersTo: null,
        details: { name: "for the log" },
      },
    ]);
    const { sandboxID } = (await cluster.ask("POST", "/v2/sandboxes", { key, body: { templateID: "base" } })).body as {
      sandboxID: string;
    };
    const extended = await cluster.ask("POST", `/sandboxes/${sandboxID}/timeout`, { key, body: { timeout: 600 } });
    expect(await entriesOf(extended)).toMatchObject([
      {
        actor: { kind: "key", id, mask: `svc_${key.slice(4, 6)}…${key.slice(-4)}` },
        action: "setTimeout",
        object: { kind: "sandbox", id: sandboxID },
        result: "done",
        details: { timeout: 600 },
      },
    ]);
  });
});

describe("a request that changes something several times", () => {
  test("leaves an entry of its first change and one of its end, which refers to it", async () => {
    const made = await cluster.ask("POST", "/v2/sandboxes", {
      body: { templateID: "base", timeout: 60, metadata: { secret: "of-a-user" }, envVars: { TOKEN: "hidden-value" } },
    });
    const { sandboxID } = made.body as { sandboxID: string };
    const [begun, done, ...more] = await entriesOf(made);
    expect(begun).toMatchObject({ action: "create", object: { kind: "sandbox", id: sandboxID }, result: "begun" });
    expect(done).toMatchObject({ object: { id: sandboxID }, result: "done", status: 201, refersTo: begun?.seq });
    expect(more).toEqual([]);
    expect(begun?.details).toEqual({ templateID: "base", timeout: 60 });
    expect(JSON.stringify([begun, done])).not.toMatch(/of-a-user|hidden-value/);
  });

  test("that fails after its first change leaves an entry of the failure", async () => {
    cluster.agent.onStart = () => {
      throw new AppError("internal", "no");
    };
    const made = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    cluster.agent.onStart = (_start, run) => run();
    expect(made.status).toBeGreaterThanOrEqual(500);
    const [begun, failed] = await entriesOf(made);
    expect(begun).toMatchObject({ result: "begun", object: { id: expect.any(String) } });
    expect(failed).toMatchObject({
      result: "failed",
      status: made.status,
      refersTo: begun?.seq,
      object: begun?.object,
    });
    expect(failed?.errorCode).toBe((made.body as { error_code: string }).error_code);
  });
});

describe("a request that changes nothing", () => {
  test("is recorded when it is refused, with the reason", async () => {
    const id = "i000000000000000000zz";
    const refused = await cluster.ask("DELETE", `/sandboxes/${id}`);
    expect(refused.status).toBe(404);
    expect(await entriesOf(refused)).toMatchObject([
      { action: "kill", object: { kind: "sandbox", id }, result: "refused", status: 404, refersTo: null },
    ]);
    const invalid = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", timeout: -1 } });
    expect(await entriesOf(invalid)).toMatchObject([{ action: "create", result: "refused", status: 400, details: {} }]);
    const broken = await cluster.ask("POST", "/v2/sandboxes", { body: "{" });
    expect(await entriesOf(broken)).toMatchObject([{ action: "create", result: "refused", errorCode: "bad_request" }]);
  });

  test("is recorded by its limits, destinations and addresses, without the query of a URL", async () => {
    const limits = { sandboxes: 5, volumes: null };
    const changed = await cluster.ask("PATCH", `/admin/projects/${cluster.teamId}`, { ...admin, body: { limits } });
    expect(await entriesOf(changed)).toMatchObject([{ action: "changeProject", details: { limits } }]);
    await cluster.ask("PATCH", `/admin/projects/${cluster.teamId}`, {
      ...admin,
      body: { limits: { sandboxes: null } },
    });
    const project = { name: "Limited", slug: "limited-one", limits: { builds: 1 } };
    const added = await cluster.ask("POST", "/admin/projects", { ...admin, body: project });
    expect((await entriesOf(added))[0]).toMatchObject({ action: "createProject", details: project });
    const webhook = { name: "w", events: ["sandbox.lifecycle.killed"], signatureSecret: "a-secret-of-the-test" };
    const hooked = await cluster.ask("POST", "/events/webhooks", {
      body: { ...webhook, url: "https://example.com/hook?token=hidden-value" },
    });
    const [entry] = await entriesOf(hooked);
    expect(entry).toMatchObject({ action: "createWebhook", details: { url: "https://example.com/hook?…" } });
    const { id } = hooked.body as { id: string };
    const moved = await cluster.ask("PATCH", `/events/webhooks/${id}`, { body: { url: "https://example.net/other" } });
    expect(await entriesOf(moved)).toMatchObject([{ details: { url: "https://example.net/other" } }]);
    const key = (await createKey("narrower")).body as { id: string };
    const narrowed = await cluster.ask("PATCH", `/api-keys/${key.id}`, {
      key: null,
      headers: { ...admin.headers, "x-team-id": cluster.teamId },
      body: { name: "narrower", scopes: ["read"], expiresAt: "2999-01-01T00:00:00Z" },
    });
    expect(await entriesOf(narrowed)).toMatchObject([
      { details: { name: "narrower", scopes: ["read"], expiresAt: "2999-01-01T00:00:00Z" } },
    ]);
    const made = await cluster.ask("POST", "/v2/sandboxes", {
      body: { templateID: "base", network: { denyOut: ["0.0.0.0/0"], allowPublicTraffic: false } },
    });
    expect((await entriesOf(made))[0]).toMatchObject({
      details: { "network.denyOut": ["0.0.0.0/0"], "network.allowPublicTraffic": false },
    });
    const { sandboxID } = made.body as { sandboxID: string };
    const opened = await cluster.ask("PUT", `/sandboxes/${sandboxID}/network`, { body: { allowOut: ["192.0.2.1"] } });
    expect((await entriesOf(opened))[0]).toMatchObject({ details: { allowOut: ["192.0.2.1"] } });
    expect(JSON.stringify(await log("limit=100"))).not.toMatch(/hidden-value|a-secret-of-the-test/);
  });

  test("is recorded when it succeeds", async () => {
    const made = await createKey("same name");
    const path = `/admin/builds/collect`;
    const collected = await cluster.ask("POST", path, { ...admin, body: { dryRun: true } });
    expect(made.status).toBe(201);
    expect(await entriesOf(collected)).toMatchObject([
      { action: "collectBuilds", actor: { kind: "admin" }, result: "done", status: 200, details: { dryRun: true } },
    ]);
  });

  test("is not recorded when it only reads", async () => {
    const read = await cluster.ask("GET", "/v2/sandboxes");
    expect(await entriesOf(read)).toEqual([]);
  });
});

test("a flood of refusals leaves a bounded number of entries", async () => {
  const key = `svc_${"0".repeat(40)}`;
  const answers = await Promise.all(Array.from({ length: 60 }, () => cluster.ask("DELETE", "/sandboxes/i1", { key })));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
  const strangers = await log("actorKind=open");
  expect(strangers.length).toBeGreaterThan(0);
  // The minute may change meanwhile.
  expect(strangers.length).toBeLessThanOrEqual(40);
  expect(strangers[0]).toMatchObject({ action: "kill", projectID: null, result: "refused", status: 401 });
});

test("what the platform ends by itself is recorded with its reason, and what a node reports names the node", async () => {
  const first = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 1 } });
  const second = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
  const expired = (first.body as { sandboxID: string }).sandboxID;
  const exited = (second.body as { sandboxID: string }).sandboxID;
  const [executionId = ""] = [...cluster.agent.live].find(([, { body }]) => body.sandboxId === exited) ?? [];
  await cluster.agent.reportExit(executionId, "exited");
  expect(await log(`object=${exited}&action=endSandbox`)).toMatchObject([
    { actor: { kind: "node", id: "n1" }, projectID: cluster.teamId, result: "done", details: { reason: "exited" } },
  ]);
  await expect
    .poll(() => log(`object=${expired}&action=endSandbox`))
    .toMatchObject([{ actor: { kind: "platform", id: null }, address: null, details: { reason: "timeout" } }]);
});

test("a project reads its own entries only, without the addresses of operators", async () => {
  const other = await cluster.addProject("Other");
  const made = await cluster.ask("POST", "/v2/sandboxes", { key: other.key, body: { templateID: "base" } });
  expect(made.status).toBe(201);
  const own = (await cluster.ask("GET", "/audit?order=asc", { key: other.key })).body as AuditEntry[];
  expect(own.map(({ action, result }) => `${action} ${result}`)).toEqual([
    "createProject done",
    "createTeamKey done",
    "create begun",
    "create done",
  ]);
  expect(new Set(own.map(({ projectID }) => projectID))).toEqual(new Set([other.teamId]));
  expect(own.map(({ address }) => address)).toEqual([null, null, "127.0.0.1", "127.0.0.1"]);
  const byAdmin = await log(`teamID=${other.projectId}`);
  expect(byAdmin.map(({ seq }) => seq)).toEqual(own.map(({ seq }) => seq));
  expect((await cluster.ask("GET", "/admin/audit", { key: other.key })).status).toBe(401);
});

test("pages join without gaps and doubles while entries are added", async () => {
  const seen: number[] = [];
  let next: string | null = "";
  while (next !== null) {
    const query: string = next === "" ? "" : `&nextToken=${next}`;
    const page = await cluster.ask("GET", `/admin/audit?limit=7${query}`, admin);
    seen.push(...(page.body as AuditEntry[]).map(({ seq }) => seq));
    next = page.headers.get("x-next-token");
    await createKey("meanwhile");
  }
  expect(seen).toEqual(Array.from({ length: seen.length }, (_, index) => seen.length - index));
  expect((await cluster.ask("GET", "/admin/audit?nextToken=nonsense", admin)).status).toBe(400);
});

test("operators verify the chain, and a head that they noted", async () => {
  const verify = async (query = "") => (await cluster.ask("GET", `/admin/audit/verify${query}`, admin)).body;
  const whole = (await verify()) as { head: { seq: number; hash: string } };
  expect(whole).toMatchObject({ whole: true, broken: null, anchor: { seq: 0 } });
  expect(await verify(`?seq=${whole.head.seq}&hash=${whole.head.hash}`)).toMatchObject({ whole: true });
  expect(await verify(`?seq=1&hash=${whole.head.hash}`)).toMatchObject({
    whole: false,
    broken: { seq: 1, fault: "replaced" },
  });
  expect((await cluster.ask("GET", "/admin/audit/verify?seq=1", admin)).status).toBe(400);
});

test("ids of paths that no database can store as they are leave the chain whole", async () => {
  const half = `${"a".repeat(255)}\u{1f98a}`;
  const shown = [];
  for (const id of ["a%00b", encodeURIComponent(half)]) {
    const answer = await cluster.ask("DELETE", `/sandboxes/${id}`);
    expect([400, 404]).toContain(answer.status);
    await expect.poll(async () => (await entriesOf(answer)).length).toBe(1);
    shown.push(...(await entriesOf(answer)).map(({ object }) => object.id));
  }
  expect(shown).toEqual(["a\u{fffd}b", `${"a".repeat(255)}\u{fffd}`]);
  expect((await cluster.ask("GET", "/admin/audit/verify", admin)).body).toMatchObject({ whole: true, broken: null });
});

test("the first change of a request and its entry are in the database before a node is asked", async () => {
  const rows: unknown[] = [];
  cluster.agent.onStart = async ({ body }, run) => {
    const statement =
      "select state, result from sandboxes join audit_log on sandboxes.id = audit_log.object_id where sandboxes.id = ?";
    rows.push(...(await cluster.database.query(statement, body.sandboxId)));
    run();
  };
  const made = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
  cluster.agent.onStart = (_start, run) => run();
  expect(made.status).toBe(201);
  expect(rows).toEqual([{ state: "starting", result: "begun" }]);
});

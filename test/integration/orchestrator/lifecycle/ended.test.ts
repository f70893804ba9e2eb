/** Ended sandboxes: what their project can read of them and for how long, and that others cannot. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ListedSandbox, SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";

const HOUR_MS = 3_600_000;

let cluster: Cluster;

const { create } = sandboxesOn(() => cluster);
const read = async (id: string) => {
  const answer = await cluster.ask("GET", `/sandboxes/${id}?ended=true`);
  expect(answer.status, answer.text).toBe(200);
  return answer.body as SandboxDetail;
};
const executionOf = (id: string) =>
  [...cluster.agent.live.values()].find(({ body }) => body.sandboxId === id)?.executionId ?? "";
const listed = async (query: string) => {
  const answer = await cluster.ask("GET", `/v2/sandboxes?${query}`);
  expect(answer.status, answer.text).toBe(200);
  return { ids: (answer.body as ListedSandbox[]).map(({ sandboxID }) => sandboxID), answer };
};

describe("the history of an ended sandbox", () => {
  let id = "";
  beforeAll(async () => {
    cluster = await startCluster();
    cluster.agent.logs = [{ timestamp: "2026-01-01T00:00:00.000Z", level: "info", message: "last words", fields: {} }];
    const zero = { cpuCount: 1, cpuUsedPct: 1, memUsed: 1, memTotal: 2, memCache: 0, diskUsed: 3, diskTotal: 4 };
    cluster.agent.metrics = [{ at: Date.now() + 60_000, ...zero }];
    cluster.agent.networkLog = {
      entries: [
        {
          at: 1,
          protocol: "tcp",
          address: "192.0.2.1",
          port: 443,
          verdict: "deny",
          rule: "default",
          count: 1,
          sentBytes: 0,
          receivedBytes: 0,
        },
      ],
      suppressed: 0,
    };
    id = (await create({ metadata: { run: "1" } })).sandboxID;
    await cluster.agent.reportExit(executionOf(id), "exited", { exitCode: 0 });
  });
  afterAll(() => cluster.stop());

  const reads = [
    ["", "base"],
    ["/metrics", "memUsed"],
    ["/network/log", "192.0.2.1"],
    ["/logs", "last words"],
  ] as const;

  test.each(reads)("GET /sandboxes/{id}%s with ended=true reads it", async (path, text) => {
    const answer = await cluster.ask("GET", `/sandboxes/${id}${path}?ended=true`);
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining(text)]);
  });

  test("the logs of both versions can be read with and without it", async () => {
    for (const path of [`/sandboxes/${id}/logs`, `/v2/sandboxes/${id}/logs`, `/v2/sandboxes/${id}/logs?ended=true`]) {
      expect((await cluster.ask("GET", path)).text).toContain("last words");
    }
  });

  test("every request without it names the reason, and changes nothing", async () => {
    const requests: readonly (readonly [string, string, object?])[] = [
      ["GET", `/sandboxes/${id}`],
      ["GET", `/sandboxes/${id}?ended=false`],
      ["GET", `/sandboxes/${id}/metrics`],
      ["GET", `/sandboxes/${id}/network/log`],
      ["DELETE", `/sandboxes/${id}`],
      ["POST", `/v2/sandboxes/${id}/connect`, {}],
      ["POST", `/sandboxes/${id}/connect`, { timeout: 10 }],
      ["POST", `/sandboxes/${id}/resume`, {}],
      ["POST", `/sandboxes/${id}/timeout`, { timeout: 10 }],
      ["POST", `/sandboxes/${id}/refreshes`, {}],
      ["POST", `/sandboxes/${id}/pause`, {}],
      ["POST", `/sandboxes/${id}/fork`, {}],
      ["POST", `/sandboxes/${id}/snapshots`, {}],
      ["PUT", `/sandboxes/${id}/network`, {}],
    ];
    for (const [method, path, body] of requests) {
      const answer = await cluster.ask(method, path, body === undefined ? {} : { body });
      expect([path, answer.status, answer.text]).toEqual([
        path,
        404,
        expect.stringContaining("its first process exited"),
      ]);
      expect(answer.body).toMatchObject({ code: 404, error_code: "sandbox_ended" });
    }
    expect(await read(id)).toMatchObject({ endReason: "exited", exitCode: 0 });
  });

  test("a list of ended sandboxes has it, filtered like any other, and lists without that state do not", async () => {
    const { sandboxID: other } = await create();
    expect((await listed("")).ids).toEqual([other]);
    const ended = await listed("state=ended");
    expect([ended.ids, ended.answer.headers.get("x-total-count")]).toEqual([[id], "1"]);
    expect(ended.answer.headers.get("x-total-running")).toBeNull();
    expect((await listed("state=running,ended&order=asc")).ids).toEqual([id, other]);
    expect((await listed("state=ended&metadata=run%3D1")).ids).toEqual([id]);
    expect((await listed("state=ended&metadata=run%3D2")).ids).toEqual([]);
    expect((await cluster.ask("GET", "/v2/sandboxes?state=gone")).status).toBe(400);
    await cluster.ask("DELETE", `/sandboxes/${other}`);
  });

  test("a running sandbox reads the same with ended=true", async () => {
    const { sandboxID } = await create();
    const plain = (await cluster.ask("GET", `/sandboxes/${sandboxID}`)).body;
    expect((await cluster.ask("GET", `/sandboxes/${sandboxID}?ended=true`)).body).toEqual(plain);
    await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
  });

  test("another project gets the answer for a sandbox that never existed", async () => {
    const { key } = await cluster.addProject("neighbour");
    for (const [path] of [...reads, ["/x/../logs"]]) {
      const at = (one: string) => cluster.ask("GET", `/sandboxes/${one}${path}?ended=true`, { key });
      const [theirs, nobodys] = [await at(id), await at("inosuchsandbox")];
      expect([theirs.status, theirs.text.replaceAll(id, "ID")]).toEqual([
        404,
        nobodys.text.replaceAll("inosuchsandbox", "ID"),
      ]);
    }
    const list = await cluster.ask("GET", "/v2/sandboxes?state=ended", { key });
    expect(list.body).toEqual([]);
    expect((await cluster.ask("DELETE", `/sandboxes/${id}`, { key })).body).toMatchObject({
      error_code: "sandbox_not_found",
    });
  });

  test("nobody reads the history of a project that was deleted", async () => {
    const { key, teamId } = await cluster.addProject("short-lived");
    const made = await cluster.ask("POST", "/v2/sandboxes", { key, body: { templateID: "base" } });
    const { sandboxID } = made.body as { sandboxID: string };
    await cluster.ask("DELETE", `/sandboxes/${sandboxID}`, { key });
    await cluster.restart({}, async () => {
      await cluster.database.query("delete from api_keys where project_id = ?", teamId);
      await cluster.database.query("delete from projects where id = ?", teamId);
    });
    await cluster.agent.beat();
    const path = `/sandboxes/${sandboxID}?ended=true`;
    expect((await cluster.ask("GET", path, { key })).status).toBe(401);
    const headers = { "x-admin-token": ADMIN_TOKEN, "x-team-id": teamId };
    expect((await cluster.ask("GET", path, { key: null, headers })).status).not.toBe(200);
    expect((await cluster.ask("GET", path)).body).toMatchObject({ error_code: "sandbox_not_found" });
  });
});

describe("the time for which history is kept", () => {
  afterEach(() => cluster.stop());

  test("ends the reading first and then the record, and longer settings keep it", async () => {
    cluster = await startCluster({ config: { endedSandboxKeepHours: 2 } });
    const ids = [await create(), await create()].map(({ sandboxID }) => sandboxID);
    for (const id of ids) await cluster.ask("DELETE", `/sandboxes/${id}`);
    const [old = "", recent = ""] = ids;
    const rows = async () => (await cluster.database.query("select id from sandboxes order by id")).map(({ id }) => id);
    const age = (hours: number) =>
      cluster.database.query("update sandboxes set ended_at = ? where id = ?", Date.now() - hours * HOUR_MS, old);
    await age(2.1);
    expect((await cluster.ask("GET", `/sandboxes/${old}?ended=true`)).body).toMatchObject({
      error_code: "sandbox_not_found",
    });
    expect((await cluster.ask("GET", `/sandboxes/${old}/logs`)).status).toBe(404);
    expect((await listed("state=ended")).ids).toEqual([recent]);
    await cluster.restart({ endedSandboxKeepHours: 3 });
    expect((await read(old)).endReason).toBe("request");
    expect(await rows()).toEqual([...ids].sort());
    await cluster.restart({ endedSandboxKeepHours: 2 });
    await expect.poll(rows).toEqual([recent]);
  });

  test("0 shows nothing after an end, not even the reason", async () => {
    cluster = await startCluster({ config: { endedSandboxKeepHours: 0 } });
    const { sandboxID } = await create();
    await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
    for (const path of ["", "?ended=true", "/logs", "/metrics?ended=true", "/network/log?ended=true"]) {
      const answer = await cluster.ask("GET", `/sandboxes/${sandboxID}${path}`);
      expect([answer.status, answer.body]).toMatchObject([404, { error_code: "sandbox_not_found" }]);
    }
    expect((await listed("state=ended")).ids).toEqual([]);
  });

  test("the logs of a sandbox whose node is lost are lost with it, and the answer names the node", async () => {
    cluster = await startCluster();
    const { sandboxID: killed } = await create();
    const { sandboxID: lost } = await create();
    await cluster.ask("DELETE", `/sandboxes/${killed}`);
    await cluster.agent.stop();
    const early = await cluster.ask("GET", `/sandboxes/${killed}/logs`);
    expect([early.status, early.body]).toMatchObject([503, { error_code: "node_unreachable" }]);
    await cluster.restart({ nodeTimeoutMs: 300, nodeLostMs: 1_500 });
    await expect.poll(() => cluster.ask("GET", `/sandboxes/${lost}`)).toMatchObject({ status: 404 });
    expect(await read(lost)).toMatchObject({ endReason: "node_lost" });
    for (const id of [killed, lost]) {
      for (const [path, what] of [
        ["/logs", "logs"],
        ["/metrics?ended=true", "metrics"],
        ["/network/log?ended=true", "decisions about connections"],
      ] as const) {
        const look = () => cluster.ask("GET", `/sandboxes/${id}${path}`);
        // Until the silence is as long for the orchestrator that was started a moment later as it is for the database.
        await expect.poll(async () => (await look()).body).toMatchObject({ code: 410, error_code: "gone" });
        expect((await look()).text).toContain(
          `the ${what} of sandbox \\"${id}\\" were lost with node 'n1', which has not`,
        );
      }
    }
  });
});

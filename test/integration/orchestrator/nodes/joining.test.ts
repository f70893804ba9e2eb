/** A machine joins the platform: with the real orchestrator on real TLS sockets. Each mistake is answered by what to do. */

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type JoinOptions, join } from "../../../../agent/joining/join.ts";
import type { Membership } from "../../../../agent/joining/membership.ts";
import { nodeApi } from "../../../../shared/agent-api/routes.ts";
import { connect } from "../../../../shared/http/client.ts";
import { newExecutionId } from "../../../../shared/ids.ts";
import { factsOf } from "../../../../shared/tls/credentials.ts";
import { digestOf } from "../../../../shared/tls/digest.ts";
import { liveCredentials } from "../../../../shared/tls/live.ts";
import { nodeName, ORCHESTRATOR } from "../../../../shared/tls/names.ts";
import { newPrivateKey } from "../../../../shared/tls/request.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { fakeHeartbeat } from "../../../support/fakes/fake-heartbeat.ts";

const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ config: { nodesPort: 0 } });
});
afterAll(() => cluster.stop());

interface Token {
  readonly id: string;
  readonly token: string;
}

async function newToken(at = cluster): Promise<Token> {
  const made = await at.ask("POST", "/admin/join-tokens", admin);
  expect(made.status).toBe(201);
  return made.body as Token;
}

let machines = 0;

/** A machine that asks to join, under a name of its own unless the test gives it one. */
async function machine(token: string, given: Partial<JoinOptions> = {}): Promise<JoinOptions> {
  return {
    token,
    orchestratorUrl: nodesUrl(cluster),
    nodeId: `m${++machines}`,
    key: await newPrivateKey(),
    apiUrl: "https://127.0.0.1:5010",
    proxyUrl: "https://127.0.0.1:5011",
    labels: {},
    now: Date.now,
    ...given,
  };
}

function nodesUrl({ nodesUrl: url }: Cluster): string {
  if (url === undefined) throw new Error("this cluster has no port for nodes");
  return url;
}

function beat(as: Pick<Membership, "nodeToken"> & Partial<Membership>, nodeId: string, url = nodesUrl(cluster)) {
  const { current } = liveCredentials(as.credentials ?? { authority: "", certificate: "", key: "" });
  const connection = connect(nodeApi, {
    url,
    name: "the orchestrator",
    headers: { authorization: `Bearer ${as.nodeToken}` },
    ...(as.credentials === undefined ? {} : { meeting: { credentials: { current }, expects: ORCHESTRATOR } }),
  });
  onTestFinished(() => connection.close());
  const body = fakeHeartbeat({
    nodeId,
    url: "https://127.0.0.1:9",
    serviceInstanceId: newExecutionId(),
    address: "127.0.0.1",
    options: { facts: { maxSandboxes: 1 }, load: { sandboxCount: 1 } },
    live: [],
    snapshots: [],
  });
  return connection.call.heartbeat({ body });
}

const nodes = async () => ((await cluster.ask("GET", "/nodes", admin)).body as { id: string }[]).map(({ id }) => id);

describe("a machine with a join token", () => {
  test("gets a certificate for its own key, and reports with it", async () => {
    const { id, token } = await newToken();
    const options = await machine(token);
    const joined = await join(options);
    expect(factsOf(joined.credentials.certificate).name).toBe(nodeName(options.nodeId));
    expect(joined.credentials.key).toBe(options.key);
    expect(await nodes()).not.toContain(options.nodeId);
    await beat(joined, options.nodeId);
    expect(await nodes()).toContain(options.nodeId);
    const listed = (await cluster.ask("GET", "/admin/join-tokens", admin)).body as object[];
    expect(listed).toContainEqual(expect.objectContaining({ id, nodeID: options.nodeId, revokedAt: null }));
    expect(JSON.stringify(listed)).not.toContain(token.split(".").at(-1));
  });

  test("may repeat the join, because the answer may have been lost", async () => {
    const options = await machine((await newToken()).token);
    const [first, second] = [await join(options), await join(options)];
    expect(digestOf(second.credentials.certificate)).toBe(digestOf(first.credentials.certificate));
  });

  test("finds the same authority after a restart of the orchestrator", async () => {
    const other = await startCluster({ config: { nodesPort: 0 } });
    onTestFinished(() => other.stop());
    const { token } = await newToken(other);
    await other.restart();
    const joined = await join(await machine(token, { orchestratorUrl: nodesUrl(other) }));
    expect(joined.credentials.authority).toContain("BEGIN CERTIFICATE");
  });

  test("leaves neither the secret nor the authority's key readable in the database, nor the secret in the audit log", async () => {
    const { token } = await newToken();
    const secret = token.split(".").at(-1) ?? "";
    const rows = JSON.stringify([
      await cluster.database.query("select * from join_tokens"),
      await cluster.database.query("select * from authorities"),
      await cluster.database.query("select * from audit_log"),
    ]);
    expect(rows).not.toContain(secret);
    expect(rows).not.toContain("PRIVATE KEY");
    expect(rows).toContain("createJoinToken");
    expect(rows).toContain('"join"');
  });
});

describe("a join is refused, with what to do,", () => {
  test("with a token that was used by another machine", async () => {
    const { id, token } = await newToken();
    const first = await machine(token);
    await join(first);
    await expect(join(await machine(token))).rejects.toThrow(
      new RegExp(`join token ${id} was used at .* by node '${first.nodeId}', and is valid once: make another one`),
    );
  });

  test("with a token that ended", async () => {
    const { id, token } = await newToken();
    await cluster.database.query("update join_tokens set expires_at = 1000 where id = ?", id);
    await expect(join(await machine(token))).rejects.toThrow(`join token ${id} ended at 1970-01-01T00:00:01.000Z`);
  });

  test("with a token that was revoked, which a second time changes nothing", async () => {
    const { id, token } = await newToken();
    for (const _time of ["first", "second"])
      expect((await cluster.ask("DELETE", `/admin/join-tokens/${id}`, admin)).status).toBe(204);
    await expect(join(await machine(token))).rejects.toThrow(`join token ${id} was revoked at`);
    expect((await cluster.ask("DELETE", "/admin/join-tokens/unknown", admin)).status).toBe(404);
  });

  test("with a wrong secret, which uses nothing", async () => {
    const { token } = await newToken();
    const wrong = `${token.slice(0, -32)}${"x".repeat(32)}`;
    await expect(join(await machine(wrong))).rejects.toThrow("does not know this join token: make one with");
    await join(await machine(token));
  });

  test("by the machine itself, which sends nothing, with a token of another platform", async () => {
    const other = await startCluster({ config: { nodesPort: 0 } });
    onTestFinished(() => other.stop());
    const { id, token } = await newToken(other);
    await expect(join(await machine(token))).rejects.toThrow("Nothing of the token was sent");
    const rows = await other.database.query("select used_at from join_tokens where id = ?", id);
    expect(rows).toEqual([{ used_at: null }]);
    await join(await machine(token, { orchestratorUrl: nodesUrl(other) }));
  });

  test.each([
    {
      clock: "two minutes behind",
      offMs: -120_000,
      says: /which is 1\d\d s behind the orchestrator's: set it \(timedatectl/,
    },
    {
      clock: "ten minutes ahead",
      offMs: 600_000,
      says: /which is [56]\d\d s ahead of the orchestrator's: set it \(timedatectl/,
    },
  ])("while the machine's clock is $clock, and the token stays valid", async ({ offMs, says }) => {
    const options = await machine((await newToken()).token, { now: () => Date.now() + offMs });
    await expect(join(options)).rejects.toThrow(says);
    await join({ ...options, now: Date.now });
  });

  test("under the name of another node, and the token stays valid", async () => {
    const first = await machine((await newToken()).token);
    await join(first);
    const second = await machine((await newToken()).token, { nodeId: first.nodeId });
    const conflict = `node '${first.nodeId}' is on this platform with another key`;
    await expect(join(second)).rejects.toThrow(conflict);
    // The platform's first node reports over loopback and has no key.
    await expect(join({ ...second, nodeId: "n1" })).rejects.toThrow("node 'n1' is on this platform with another key");
    await join({ ...second, nodeId: `${first.nodeId}-b` });
  });

  test("where nothing listens", async () => {
    const { token } = await newToken();
    const wrong = await machine(token, { orchestratorUrl: "https://127.0.0.1:1" });
    await expect(join(wrong)).rejects.toThrow("nothing listens at https://127.0.0.1:1");
    // Of several orchestrators the next one is asked, and the token is still valid.
    await join({ ...wrong, orchestratorUrl: `https://127.0.0.1:1, ${nodesUrl(cluster)}` });
  });

  test("at an address without TLS", async () => {
    const { token } = await newToken();
    await expect(join(await machine(token, { orchestratorUrl: cluster.url }))).rejects.toThrow(
      "it begins with https:// and has the port of SVC_NODES_PORT",
    );
    const api = cluster.url.replace("http:", "https:");
    await expect(join(await machine(token, { orchestratorUrl: api }))).rejects.toThrow("does not speak TLS");
  });

  test("by a platform that has no port for nodes", async () => {
    const one = await startCluster();
    onTestFinished(() => one.stop());
    const answer = await one.ask("POST", "/admin/join-tokens", admin);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("set SVC_NODES_PORT and SVC_NODES_HOST");
  });
});

describe("a report of a node that joined is refused", () => {
  async function member() {
    const options = await machine((await newToken()).token);
    return { nodeId: options.nodeId, ...(await join(options)) };
  }

  test("with the certificate of another node", async () => {
    const [one, two] = [await member(), await member()];
    await expect(beat({ ...two, nodeToken: one.nodeToken }, one.nodeId)).rejects.toThrow(
      `the token is of node '${one.nodeId}', and the connection has the certificate of node '${two.nodeId}'`,
    );
  });

  test("without a certificate, and at the port of the API", async () => {
    const { nodeId, nodeToken, credentials } = await member();
    const authority = { authority: credentials.authority, certificate: undefined, key: undefined };
    await expect(beat({ nodeToken, credentials: authority as never }, nodeId)).rejects.toThrow(
      "the connection has no certificate of a node",
    );
    await expect(beat({ nodeToken }, nodeId, cluster.url)).rejects.toThrow("reports with its certificate only");
  });

  test("after its record is gone", async () => {
    const { nodeId, ...membership } = await member();
    await beat(membership, nodeId);
    await cluster.database.query("delete from members where node_id = ?", nodeId);
    await expect(beat(membership, nodeId)).rejects.toThrow(
      `node '${nodeId}' is not on this platform any more: join the platform again with a new token`,
    );
  });
});

/** A node is ready when it is reached at both ports, and one identity is one agent. Each refusal says what to look at. */

import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { admin, joinCluster, startMember, startMemberProxy } from "../../../support/cluster/members.ts";
import { startFakeAgent } from "../../../support/fakes/fake-agent.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { freePort, silentPort } from "../../../support/peers/listening.ts";

let cluster: Cluster;
beforeEach(async () => {
  cluster = await startCluster({ agents: 0, config: { nodesPort: 0 } });
});
afterEach(() => cluster.stop());

interface Shown {
  readonly id: string;
  readonly status: string;
  readonly findings: {
    readonly id: string;
    readonly problem: string;
    readonly evidence: string;
    readonly wayOut: string;
  }[];
}

async function shown(id: string): Promise<Shown> {
  return (await cluster.ask("GET", `/nodes/${id}`, admin)).body as Shown;
}

/** On a machine that stands still for some seconds the call back is late: it is tried again at each report. */
const isReady = (agent: FakeAgent) =>
  expect
    .poll(async () => {
      await agent.beat();
      return (await shown(agent.nodeId)).status;
    })
    .toBe("ready");

const create = () => cluster.ask("POST", "/sandboxes", { body: { templateID: "base" } });

describe("a node that has joined", () => {
  test("is ready with its first report when both of its ports answer", async () => {
    const first = async () => {
      const agent = await startMember(cluster, await joinCluster(cluster), { heartbeatMs: 0 });
      const { status, findings } = await shown(agent.nodeId);
      return [status, findings, agent.replies.map(({ unreached }) => unreached)];
    };
    // A machine that stands still for some seconds answers the call back too late: another node tries it once more.
    await expect.poll(first).toEqual(["ready", [], [undefined]]);
  });

  test("gets no sandbox while its proxy's port is closed, says which address, and is ready once the port is open", async () => {
    const machine = await joinCluster(cluster);
    const port = await freePort();
    const agent = await startMember(cluster, machine, { proxyUrl: `https://127.0.0.1:${port}`, heartbeatMs: 0 });
    const { status, findings } = await shown(agent.nodeId);
    expect([status, findings.map(({ id }) => id)]).toEqual(["connecting", ["node.proxy"]]);
    expect(findings[0]?.problem).toContain(`node proxy of this node at https://127.0.0.1:${port}`);
    expect(findings[0]?.evidence).toBe(`nothing listens at https://127.0.0.1:${port}`);
    expect(findings[0]?.wayOut).toMatch(/SVC_PROXY_PORT.*firewall/);
    // The agent logs what the reply says.
    expect(agent.replies.at(-1)?.unreached).toEqual(findings);
    const refused = await create();
    expect(refused.status).toBe(503);
    expect(refused.text).toContain(`the orchestrator does not reach node '${agent.nodeId}': GET /nodes says why`);
    expect(agent.starts).toEqual([]);

    await startMemberProxy(machine, () => agent, port);
    await isReady(agent);
    expect((await shown(agent.nodeId)).findings).toEqual([]);
    expect((await create()).status).toBe(201);
  });

  test("is called back at its agent API too, and a port that never answers points to the firewalls", async () => {
    const apiUrl = `https://127.0.0.1:${await silentPort()}`;
    const agent = await startMember(cluster, await joinCluster(cluster), { facts: { apiUrl }, heartbeatMs: 0 });
    const { status, findings } = await shown(agent.nodeId);
    expect([status, findings.map(({ id }) => id)]).toEqual(["connecting", ["node.api"]]);
    expect(findings[0]?.problem).toContain(apiUrl);
    expect(findings[0]?.evidence).toBe(
      `no packet comes back from ${apiUrl}: open its port in the firewalls between the machines`,
    );
  });

  test("whose address is another node's stays connecting, and the certificate tells whose it is", async () => {
    const other = await startMember(cluster, await joinCluster(cluster));
    const facts = { apiUrl: other.url };
    const agent = await startMember(cluster, await joinCluster(cluster), { facts, heartbeatMs: 0 });
    const { findings } = await shown(agent.nodeId);
    expect(findings.map(({ evidence }) => evidence)).toEqual([
      `another machine answers at ${other.url}: its certificate is of svc://node/${other.nodeId}, not of svc://node/${agent.nodeId}`,
    ]);
  });

  test("is called back again after a restart of its agent at other ports", async () => {
    const machine = await joinCluster(cluster);
    const first = await startMember(cluster, machine, { heartbeatMs: 0 });
    await first.stop();
    const port = await freePort();
    const second = await startMember(cluster, machine, { proxyUrl: `https://127.0.0.1:${port}`, heartbeatMs: 0 });
    expect((await shown(second.nodeId)).status).toBe("connecting");
  });

  test("is called back by an orchestrator that has restarted", async () => {
    const machine = await joinCluster(cluster);
    const proxy = await startMemberProxy(machine, () => undefined);
    const agent = await startMember(cluster, machine, { proxyUrl: proxy.url, heartbeatMs: 0 });
    await isReady(agent);
    await proxy.stop();
    await cluster.restart({ nodesPort: Number(new URL(cluster.nodesUrl ?? "").port) });
    await agent.beat();
    expect((await shown(agent.nodeId)).status).toBe("connecting");
  });
});

describe("of two agents with one identity", () => {
  test("the second is refused while the first answers, and says what to do; later it takes its place", async () => {
    const machine = await joinCluster(cluster);
    const first = await startMember(cluster, machine, { heartbeatMs: 0 });
    // A copy of the machine: the same name, key and tokens at another address.
    const refused = await startMember(cluster, machine, { heartbeatMs: 0 }).catch((error: unknown) => error);
    expect(String(refused)).toMatch(
      new RegExp(
        `another agent is node '${first.nodeId}' already and answers at ${first.url}.*stop one of them.*SVC_NODE_ID`,
      ),
    );
    await first.beat();
    expect((await create()).status).toBe(201);
    expect(first.starts).toHaveLength(1);

    await first.stop();
    await isReady(await startMember(cluster, machine, { heartbeatMs: 0 }));
  });

  test("one that names the address of the other is refused", async () => {
    const machine = await joinCluster(cluster);
    const first = await startMember(cluster, machine, { heartbeatMs: 0 });
    const copy = startMember(cluster, machine, { heartbeatMs: 0, facts: { apiUrl: first.url } });
    await expect(copy).rejects.toThrow(`another agent is node '${first.nodeId}' already and answers at ${first.url}`);
  });

  test("on the orchestrator's machine the second is refused too", async () => {
    const one = await startCluster();
    onTestFinished(() => one.stop());
    const { nodeToken, orchestratorToken } = one.agent.tokens;
    const given = { orchestratorUrl: one.url, nodeId: one.agent.nodeId, nodeToken, orchestratorToken, heartbeatMs: 0 };
    await expect(startFakeAgent(given)).rejects.toThrow("another agent is node 'n1' already");
  });
});

test.each([
  ["agent API", { apiUrl: "http://198.51.100.9:5010" }],
  ["node proxy", { proxyUrl: "http://node.test:5011" }],
])(
  "a node whose %s is without TLS on another machine is refused, and the error names the join",
  async (_what, facts) => {
    const machine = await joinCluster(cluster);
    await expect(startMember(cluster, machine, { facts, heartbeatMs: 0 })).rejects.toThrow(
      /in clear: make a join token on the platform \(POST \/admin\/join-tokens\) and join with it/,
    );
  },
);

/** Machines that join a cluster, each with a state directory of its own, as far as they need no Docker. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { filesOf, openPeering, type PeeringConfig } from "../../../agent/joining/open-peering.ts";
import type { Peering } from "../../../agent/joining/peering.ts";
import type { NodeProxy } from "../../../agent/proxy/node-proxy.ts";
import { createLog } from "../../../shared/program/log.ts";
import { startFakeAgent } from "../fakes/fake-agent.ts";
import type { FakeAgent, FakeAgentOptions } from "../fakes/fake-agent-shapes.ts";
import { startAgentProxy } from "./agent-proxy.ts";
import { ADMIN_TOKEN, type Cluster } from "./cluster.ts";

export const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };

const log = createLog({ component: "test", level: "silent" });
let machines = 0;

export async function newJoinToken(cluster: Cluster): Promise<string> {
  const made = await cluster.ask("POST", "/admin/join-tokens", admin);
  if (made.status !== 201) throw new Error(`no join token: ${made.text}`);
  return (made.body as { token: string }).token;
}

export function nodesUrlOf({ nodesUrl }: Cluster): string {
  if (nodesUrl === undefined) throw new Error("this cluster has no port for nodes");
  return nodesUrl;
}

/** The settings of a machine that has not joined yet, under a name of its own. The test's end removes its state. */
export async function newMachine(cluster: Cluster, given: Partial<PeeringConfig> = {}): Promise<PeeringConfig> {
  const stateDir = await mkdtemp(join(tmpdir(), "svc-member-"));
  onTestFinished(() => rm(stateDir, { recursive: true, force: true }));
  return {
    stateDir,
    orchestratorUrl: nodesUrlOf(cluster),
    nodeId: `member-${++machines}`,
    agentHost: "127.0.0.1",
    agentPort: 5010,
    proxyHost: "127.0.0.1",
    proxyPort: 5011,
    labels: "",
    ...given,
  };
}

export interface JoinedMachine {
  readonly config: PeeringConfig;
  readonly peering: Peering;
}

export async function joinCluster(cluster: Cluster, given: Partial<PeeringConfig> = {}): Promise<JoinedMachine> {
  const config = await newMachine(cluster, given);
  const peering = await openPeering({ ...config, joinToken: await newJoinToken(cluster) }, { now: Date.now, log });
  return { config, peering };
}

/** What the join has left, as the next start of the agent reads it. */
export function keptBy({ stateDir }: PeeringConfig) {
  const kept = filesOf({ stateDir }).read();
  if (kept === undefined) throw new Error(`nothing is kept in ${stateDir}`);
  return kept;
}

/** The real node proxy of a machine that has joined, for the sandboxes of its fake agent, which are on loopback. */
export async function startMemberProxy(
  { peering }: Pick<JoinedMachine, "peering">,
  agent: () => FakeAgent | undefined,
  port = 0,
): Promise<NodeProxy> {
  const proxy = await startAgentProxy(
    { port, nodeTokens: () => peering.orchestratorTokens, door: peering.proxyDoor },
    agent,
  );
  onTestFinished(() => proxy.stop());
  return proxy;
}

/**
 * On a machine that stands still for some seconds the orchestrator's call back comes too late. It is made again at each report,
 * also for a node whose addresses lead nowhere, for which nobody waits here.
 */
async function admitted(agent: FakeAgent, { proxyUrl, facts }: Partial<FakeAgentOptions>): Promise<void> {
  if (proxyUrl !== undefined || facts?.apiUrl !== undefined) return;
  for (let tries = 0; tries < 10 && agent.replies.at(-1)?.unreached !== undefined; tries++) await agent.beat();
}

/** A fake agent on a machine that has joined: it serves TLS, has a real node proxy, and reports with its certificate. */
export async function startMember(
  cluster: Cluster,
  machine: JoinedMachine,
  options: Partial<FakeAgentOptions> = {},
): Promise<FakeAgent> {
  const { config, peering } = machine;
  const { nodeToken, orchestratorToken } = keptBy(config);
  const running: { agent?: FakeAgent } = {};
  const proxyUrl = options.proxyUrl ?? (await startMemberProxy(machine, () => running.agent)).url;
  const agent = await startFakeAgent({
    orchestratorUrl: nodesUrlOf(cluster),
    nodeId: config.nodeId,
    nodeToken,
    orchestratorToken,
    peering,
    proxyUrl,
    ...options,
    facts: { machineId: `machine-of-${config.nodeId}`, ...options.facts },
  });
  running.agent = agent;
  onTestFinished(() => agent.stop());
  await admitted(agent, options);
  return agent;
}

/** Metrics of nodes, drains and certificates of a live orchestrator. */

import { expect, onTestFinished, test } from "vitest";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
const SOON = { timeout: 30_000 };

async function metricsOf(cluster: Cluster): Promise<readonly string[]> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  return (await cluster.ask("GET", "/metrics", { key: null, headers })).text.split("\n");
}

test("/metrics says of each node whether it is ready, cordoned or drained, how its clock is, and how far drains are", async () => {
  const ahead = { heartbeatMs: 0, load: { at: Date.now() + 3_600_000 } };
  const cluster = await startCluster({ agents: 3, agent: ahead, config: { nodeTimeoutMs: 600_000 } });
  onTestFinished(() => cluster.stop());
  const [drained = "", cordoned = "", ready = ""] = cluster.agents.map(({ nodeId }) => nodeId);
  const { sandboxID } = (await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } })).body as {
    sandboxID: string;
  };
  await cluster.ask("POST", `/nodes/${cordoned}`, { ...admin, body: { status: "draining" } });
  const begun = await cluster.ask("POST", `/nodes/${drained}/drain`, { ...admin, body: { running: "finish" } });
  expect(begun.status, begun.text).toBe(202);
  const lines = await metricsOf(cluster);
  expect(lines.filter((line) => line.startsWith("svc_node_state{")).toSorted()).toEqual(
    [
      `svc_node_state{node="${drained}",state="draining"} 1`,
      `svc_node_state{node="${cordoned}",state="cordoned"} 1`,
      `svc_node_state{node="${ready}",state="ready"} 1`,
    ].toSorted(),
  );
  const skews = lines.filter((line) => line.startsWith("svc_node_clock_skew_seconds{"));
  expect(skews.map((line) => Math.round(Number(line.split(" ")[1]) / 600))).toEqual([6, 6, 6]);
  expect(lines).toContain("svc_nodes_lost_total 0");
  await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
  await expect
    .poll(async () => (await metricsOf(cluster)).filter((line) => line.startsWith("svc_drain")), SOON)
    .toEqual(expect.arrayContaining(['svc_drains{state="done"} 1', `svc_drain_sandboxes_left{node="${drained}"} 0`]));
  expect(lines.join("\n")).not.toContain(sandboxID);
});

test("/metrics says when the certificates between machines and their authority end, where there are such", async () => {
  const joinable = await startCluster({ agents: 0, config: { nodesPort: 0 } });
  onTestFinished(() => joinable.stop());
  const ends = (await metricsOf(joinable)).filter((line) => /^svc_(machine_certificate|authority)/.test(line));
  const [authority, own] = ends.toSorted().map((line) => Number(line.split(" ")[1]) - Date.now() / 1000);
  expect(ends).toHaveLength(2);
  expect(own).toBeGreaterThan(24 * 3_600);
  expect(own).toBeLessThan(80 * 3_600);
  expect(authority).toBeGreaterThan(365 * 86_400);
  const alone = await startCluster({ agents: 0 });
  onTestFinished(() => alone.stop());
  expect((await metricsOf(alone)).filter((line) => /^svc_(machine_certificate|authority)/.test(line))).toEqual([]);
});

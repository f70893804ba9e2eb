/** The node beside the orchestrator joins the platform, where it has reported over loopback without a key until then. */

import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { checkMembership } from "../../../../agent/joining/check-membership.ts";
import { openPeering, type PeeringConfig } from "../../../../agent/joining/open-peering.ts";
import { nodeToken } from "../../../../shared/agent-api/joining/node-tokens.ts";
import { createLog } from "../../../../shared/program/log.ts";
import {
  ADMIN_TOKEN,
  type Cluster,
  type ClusterOptions,
  NODE_KEY,
  startCluster,
} from "../../../support/cluster/cluster.ts";
import { joinCluster, keptBy, newJoinToken, newMachine, startMember } from "../../../support/cluster/members.ts";

const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
const OWN = { nodeId: "n1", nodeToken: nodeToken(NODE_KEY, "n1", "from node") };
const REMOVAL = { recursive: true, force: true };
const TAKEN = "node 'n1' is on this platform with another key";

async function platform(options: ClusterOptions = {}): Promise<Cluster> {
  const cluster = await startCluster({ config: { nodesPort: 0 }, ...options });
  onTestFinished(() => cluster.stop());
  return cluster;
}

const nodes = async (cluster: Cluster) =>
  (await cluster.ask("GET", "/nodes", admin)).body as readonly {
    readonly id: string;
    readonly status: string;
    readonly leaseEndsAt: string | null;
  }[];

test("the node beside the orchestrator joins under its name with the proof of its token, and its sandboxes stay", async () => {
  const cluster = await platform({ onSqlite: true });
  const { sandboxID } = (await cluster.ask("POST", "/sandboxes", { body: { templateID: "base" } })).body as {
    sandboxID: string;
  };
  const former = cluster.agent;
  const machine = await joinCluster(cluster, OWN);
  expect(keptBy(machine.config).nodeToken).toBe(OWN.nodeToken);
  // Over loopback nobody is this node any more.
  await expect(former.beat()).rejects.toThrow("reports with its certificate only");
  await former.stop();

  const joined = await startMember(cluster, machine, { facts: { machineId: "fake-machine" } });
  for (const [id, execution] of former.live) joined.live.set(id, execution);
  await joined.beat();
  expect(await nodes(cluster)).toMatchObject([{ id: "n1", status: "ready" }]);
  const { body } = await cluster.ask("GET", `/sandboxes/${sandboxID}`);
  expect(body).toMatchObject({ sandboxID, state: "running" });
  expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`)).status).toBe(204);

  const other = await startMember(cluster, await joinCluster(cluster));
  expect((await other.beat()).lease).toMatchObject({ forMs: 30_000 });
  // No network parts it from the only orchestrator, which must be able to stand still.
  expect((await joined.beat()).lease).toBeUndefined();
  const ends = new Map((await nodes(cluster)).map(({ id, leaseEndsAt }) => [id, leaseEndsAt]));
  expect(ends.get("n1")).toBeNull();
  const inMs = Date.parse(ends.get(other.nodeId) ?? "") - Date.now();
  expect(inMs).toBeGreaterThan(-60_000);
  expect(inMs).toBeLessThanOrEqual(30_000);
});

test("the proof of an earlier node key is one while that key is valid", async () => {
  const cluster = await platform();
  await cluster.restart({ nodeKey: "test-node-key-0002", nodeKeyPrevious: NODE_KEY });
  const { config } = await joinCluster(cluster, OWN);
  expect(keptBy(config).nodeToken).toBe(nodeToken("test-node-key-0002", "n1", "from node"));
});

test.each([
  ["no proof", {}],
  ["the proof of another node's token", { nodeToken: nodeToken(NODE_KEY, "n2", "from node") }],
  ["the proof of a token of another platform", { nodeToken: nodeToken("another-node-key-0001", "n1", "from node") }],
])("a machine with %s does not get the name of the node beside the orchestrator", async (_what, token) => {
  const cluster = await platform();
  await expect(joinCluster(cluster, { nodeId: "n1", ...token })).rejects.toThrow(TAKEN);
  expect(await nodes(cluster)).toMatchObject([{ id: "n1", status: "ready" }]);
  await joinCluster(cluster, OWN);
});

test("a node that has a key keeps it against a machine that shows no proof, and joins again with it", async () => {
  const cluster = await platform();
  const first = await joinCluster(cluster, OWN);
  await expect(joinCluster(cluster, { nodeId: "n1" })).rejects.toThrow(TAKEN);
  // With its own key, as after a certificate that has ended.
  const again = await joinCluster(cluster, first.config);
  expect(keptBy(again.config).credentials.key).toBe(keptBy(first.config).credentials.key);
});

describe("the own machine whose directory of the membership is lost", () => {
  const log = createLog({ component: "test", level: "silent" });
  const open = (config: PeeringConfig) => openPeering(config, { now: Date.now, log });

  /** A platform, its own machine as a node, and the settings that machine's agent starts with. */
  async function joined() {
    const cluster = await platform({ onSqlite: true });
    const config = await newMachine(cluster, { ...OWN, joinToken: await newJoinToken(cluster) });
    const machine = { config, peering: await open(config) };
    await cluster.agent.stop();
    return { cluster, config, machine, lost: (file = "") => rm(join(config.stateDir, "membership", file), REMOVAL) };
  }

  test.each(["", "key.pem", "membership.json"])(
    "is the same node at its next start, with its used token and all sandboxes (lost: '%s')",
    async (file) => {
      const { cluster, config, machine, lost } = await joined();
      const first = await startMember(cluster, machine, { facts: { machineId: "fake-machine" } });
      await first.beat();
      const { sandboxID } = (await cluster.ask("POST", "/sandboxes", { body: { templateID: "base" } })).body as {
        sandboxID: string;
      };
      const { key } = keptBy(config).credentials;
      await lost(file);
      await first.stop();

      const peering = await open(config);
      expect(keptBy(config).credentials.key === key).toBe(file === "membership.json");
      const next = await startMember(cluster, { config, peering }, { facts: { machineId: "fake-machine" } });
      for (const [id, execution] of first.live) next.live.set(id, execution);
      await next.beat();
      expect(await nodes(cluster)).toMatchObject([{ id: "n1", status: "ready" }]);
      expect((await cluster.ask("GET", `/sandboxes/${sandboxID}`)).body).toMatchObject({ state: "running" });
      expect((await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`)).status).toBe(204);
    },
  );

  test("leaves nothing to who has its former key", async () => {
    const { cluster, config, machine, lost } = await joined();
    const former = await startMember(cluster, machine);
    await former.beat();
    await lost();
    await open(config);
    await expect(former.beat()).rejects.toThrow("node 'n1' has joined with another key since");
  });

  test.each([
    ["no proof", {}],
    ["another node's token", { nodeToken: nodeToken(NODE_KEY, "n2", "from node") }],
  ])("is not replaced by who has its join token and %s", async (_what, given) => {
    const { cluster, config } = await joined();
    const { joinToken = "" } = config;
    const other = await newMachine(cluster, { nodeId: "n1", joinToken, ...given });
    await expect(open(other)).rejects.toThrow("by node 'n1', and is valid once");
    await checkMembership(config, { now: Date.now, log });
  });

  test("does not come back with its used token after it was removed, but with a new one", async () => {
    const { cluster, config, lost } = await joined();
    await lost();
    await cluster.database.query("delete from members where node_id = ?", "n1");
    await expect(open(config)).rejects.toThrow("by node 'n1', and is valid once");
    await open({ ...config, joinToken: await newJoinToken(cluster) });
  });
});

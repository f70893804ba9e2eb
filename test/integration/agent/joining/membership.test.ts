/** How a machine becomes a node and stays one: what it keeps on its disk, and what its next starts make of it. */

import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { checkMembership } from "../../../../agent/joining/check-membership.ts";
import { checkPeering, filesOf, openPeering, type PeeringConfig } from "../../../../agent/joining/open-peering.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { factsOf } from "../../../../shared/tls/credentials.ts";
import { digestOf, digestOfKey } from "../../../../shared/tls/digest.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { joinCluster, keptBy, newJoinToken, newMachine, nodesUrlOf } from "../../../support/cluster/members.ts";

const HOUR_MS = 3_600_000;
const log = createLog({ component: "test", level: "silent" });

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ agents: 0, config: { nodesPort: 0 } });
});
afterAll(() => cluster.stop());

const open = (config: PeeringConfig, now = Date.now) => openPeering(config, { now, log });

describe("a machine with a join token in its settings", () => {
  test("joins at its start, and keeps key, certificate and tokens where only root reads them", async () => {
    const { config, peering } = await joinCluster(cluster);
    expect(peering.member).toBeDefined();
    const directory = join(config.stateDir, "membership");
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    expect((await readdir(directory)).sort()).toEqual(["key.pem", "membership.json"]);
    for (const name of await readdir(directory)) {
      expect([name, (await stat(join(directory, name))).mode & 0o777]).toEqual([name, 0o600]);
    }
    const { credentials } = keptBy(config);
    expect(digestOf(credentials.certificate)).toBe(digestOfKey(credentials.key));
  });

  test("is a node at its next start, with the used token in its settings or without it", async () => {
    const machine = await newMachine(cluster);
    const joinToken = await newJoinToken(cluster);
    const first = await open({ ...machine, joinToken });
    const { certificate } = first.member?.credentials.current ?? {};
    for (const config of [machine, { ...machine, joinToken }]) {
      const next = await open(config);
      expect(next.member?.credentials.current.certificate).toBe(certificate);
      expect(next.nodeToken).toBe(first.nodeToken);
    }
  });

  test("joins with the key that it had made, where the answer to the first try was lost", async () => {
    const machine = await newMachine(cluster);
    const key = await filesOf(machine).key();
    await open({ ...machine, joinToken: await newJoinToken(cluster) });
    expect(keptBy(machine).credentials.key).toBe(key);
  });

  test("joins again under its name with its key after its certificate has ended", async () => {
    const { config } = await joinCluster(cluster);
    const before = keptBy(config).credentials;
    const ended = factsOf(before.certificate).until + HOUR_MS;
    // By this clock the certificate has ended, and the orchestrator says that the clock is wrong.
    const token = await newJoinToken(cluster);
    await expect(open({ ...config, joinToken: token }, () => ended)).rejects.toThrow("set it (timedatectl");
    const again = await open({ ...config, nodeId: config.nodeId, joinToken: token });
    expect(again.member?.credentials.current.key).toBe(before.key);
  });
});

describe("a machine that has joined", () => {
  test("starts although its certificate has ended, so that its sandboxes end in time", async () => {
    const { config } = await joinCluster(cluster);
    const said: string[] = [];
    const hearing = createLog({
      component: "test",
      level: "error",
      destination: { write: (line) => void said.push(line) },
    });
    const ended = factsOf(keptBy(config).credentials.certificate).until + HOUR_MS;
    const peering = await openPeering(config, { now: () => ended, log: hearing });
    expect(peering.member).toBeDefined();
    expect(said.join("")).toContain("set the clock if it is wrong, otherwise join the platform again with a new token");
  });

  test.each([
    {
      what: "whose key is another one",
      change: async ({ stateDir }: PeeringConfig) => {
        const other = await joinCluster(cluster);
        await writeFile(join(stateDir, "membership/key.pem"), keptBy(other.config).credentials.key);
      },
      says: "the key is not that of the certificate: join the platform again with a new token",
    },
    {
      what: "whose certificate is cut off",
      change: async ({ stateDir }: PeeringConfig) => writeFile(join(stateDir, "membership/membership.json"), "{"),
      says: "membership.json is missing or cannot be read: join the platform again with a new token",
    },
    {
      what: "that has another name now",
      change: () => Promise.resolve(),
      given: { nodeId: "renamed" },
      says: "not of svc://node/renamed: join the platform again under this name",
    },
    {
      what: "that reports to the port of the API",
      change: () => Promise.resolve(),
      given: { orchestratorUrl: "http://127.0.0.1:3000" },
      says: "is not the orchestrator's address for nodes: it begins with https:// and has the port of SVC_NODES_PORT",
    },
    {
      what: "that serves plain HTTP",
      change: () => Promise.resolve(),
      given: { agentUrl: "http://198.51.100.7:5010" },
      says: "SVC_AGENT_URL http://198.51.100.7:5010 is plain HTTP, and a node that has joined serves TLS: write https://",
    },
    {
      what: "that does not say at which address it is reached",
      change: () => Promise.resolve(),
      given: { proxyHost: "0.0.0.0" },
      says: "SVC_PROXY_HOST 0.0.0.0 is every address of this machine: set SVC_PROXY_URL",
    },
  ])("$what does not start, and says what to do", async ({ change, given, says }) => {
    const { config } = await joinCluster(cluster);
    await change(config);
    await expect(open({ ...config, ...given })).rejects.toThrow(says);
    expect(() => checkPeering({ ...config, ...given })).toThrow(says);
  });
});

describe("a machine that has not joined", () => {
  const TOKENS = { nodeToken: "node-token-of-the-test", orchestratorToken: "other-token-of-the-test" };
  const HERE = { orchestratorUrl: "http://127.0.0.1:3000", ...TOKENS };

  test("has the tokens of its settings on loopback, plain HTTP and no files", async () => {
    const machine = await newMachine(cluster, HERE);
    const peering = await open(machine);
    expect(peering).toMatchObject({
      nodeToken: TOKENS.nodeToken,
      orchestratorTokens: [TOKENS.orchestratorToken],
    });
    expect([peering.meeting, peering.apiDoor, peering.proxyDoor, peering.member]).toEqual(Array(4).fill(undefined));
    expect(await readdir(machine.stateDir)).toEqual([]);
  });

  test("needs both tokens, and the error names the join", async () => {
    const { nodeToken: _, orchestratorToken: __, ...without } = await newMachine(cluster, HERE);
    for (const name of ["SVC_NODE_TOKEN", "SVC_ORCHESTRATOR_TOKEN"]) {
      expect(() => checkPeering(without)).toThrow(`${name} is required on the orchestrator's machine`);
    }
    await expect(open(without)).rejects.toThrow("agent --join TOKEN");
  });

  test.each([
    ["SVC_ORCHESTRATOR_URL", { orchestratorUrl: "http://198.51.100.1:3000" }, "to another machine in clear"],
    ["SVC_AGENT_URL", { agentUrl: "http://node.test:5010" }, "to another machine in clear"],
    ["SVC_PROXY_URL", { proxyUrl: "http://[2001:db8::1]:5011" }, "to another machine in clear"],
    ["SVC_AGENT_HOST", { agentHost: "0.0.0.0" }, "would serve other machines in clear"],
    ["SVC_PROXY_HOST", { proxyHost: "198.51.100.2" }, "would serve other machines in clear"],
  ])(
    "does not start with a %s of another machine without TLS, and the error names the join",
    async (name, given, says) => {
      const machine = await newMachine(cluster, { ...HERE, ...given });
      await expect(open(machine)).rejects.toThrow(new RegExp(`${name} .*${says}.*agent --join TOKEN`));
      expect(() => checkPeering(machine)).toThrow(says);
    },
  );

  test("may stand behind a proxy of the operator's that ends TLS", async () => {
    const https = { orchestratorUrl: "https://svc.test", agentUrl: "https://n1.test", proxyUrl: "https://n1.test:444" };
    await expect(open(await newMachine(cluster, { ...HERE, ...https }))).resolves.toMatchObject({ member: undefined });
  });
});

describe("the question whether the platform takes this machine as its node", () => {
  const check = (config: PeeringConfig, now = Date.now) => checkMembership(config, { now, log });

  test("has the answer yes after a join, also where a later join token is in the settings", async () => {
    const { config } = await joinCluster(cluster);
    await check(config);
    await check({ ...config, joinToken: await newJoinToken(cluster) });
  });

  test("has the answer no, with the reason, before a join, after a removal, and of another platform", async () => {
    await expect(check(await newMachine(cluster))).rejects.toThrow("has not joined the platform");
    const { config } = await joinCluster(cluster);
    await cluster.database.query("delete from members where node_id = ?", config.nodeId);
    await expect(check(config)).rejects.toThrow("is not on this platform any more");

    const other = await startCluster({ agents: 0, config: { nodesPort: 0 } });
    onTestFinished(() => other.stop());
    await expect(check({ ...config, orchestratorUrl: nodesUrlOf(other) })).rejects.toThrow(
      "is of another authority than the platform's",
    );
    await expect(check({ ...config, orchestratorUrl: "https://127.0.0.1:1" })).rejects.toThrow("nothing listens at");
  });
});

test("a file of the membership is replaced as a whole: no draft is left, and the certificate is readable at any time", async () => {
  const { config } = await joinCluster(cluster);
  const files = filesOf(config);
  for (let round = 0; round < 20; round++) files.write({ ...keptBy(config), nodeToken: `token-of-round-${round}-000` });
  expect(keptBy(config).nodeToken).toBe("token-of-round-19-000");
  expect((await readdir(join(config.stateDir, "membership"))).sort()).toEqual(["key.pem", "membership.json"]);
  expect(await readFile(join(config.stateDir, "membership/membership.json"), "utf8")).not.toContain("PRIVATE KEY");
});

/** Where sandboxes and builds go while the disk of a node is short, as the nodes report it. */

import { afterEach, expect, test } from "vitest";
import { BUILDING, buildingOn } from "../../../support/cluster/building.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";

const GIB = 1024 ** 3;
const DISK = { promisedBytes: 0, usedBytes: 0, freeBytes: 100 * GIB, reserveBytes: 10 * GIB, short: false };

let cluster: Cluster;
afterEach(() => cluster.stop());

const { request, start, status } = buildingOn(() => cluster);
const create = () => cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
const nodes = async () => {
  const headers = { "x-admin-token": "test-admin-token-0001" };
  return (await cluster.ask("GET", "/nodes", { key: null, headers })).body as { id: string; metrics: object }[];
};

/** Reports that disk from now on. */
async function report(agent: FakeAgent | undefined, disk: Partial<typeof DISK>): Promise<void> {
  if (agent === undefined) throw new Error("the cluster has no such agent");
  agent.load = { sandboxDisk: { ...DISK, ...disk } };
  await agent.beat();
}

test("a node below its reserve gets no sandbox while another has room, and all of them refuse 507 with the reason", async () => {
  cluster = await startCluster({ agents: 2, agent: { heartbeatMs: 0 }, config: { nodeTimeoutMs: 600_000 } });
  const [first, second] = cluster.agents;
  await report(first, { freeBytes: 9 * GIB, short: true });
  for (let count = 0; count < 6; count++) expect((await create()).status).toBe(201);
  expect([first?.live.size, second?.live.size]).toEqual([0, 6]);
  await report(second, { short: true });
  expect(await create()).toMatchObject({
    status: 507,
    body: {
      error_code: "no_space",
      message: expect.stringMatching(
        /^Failed to place sandbox: the disk of every node .*SVC_DISK_RESERVE_MB/,
      ) as unknown,
    },
  });
  expect(await nodes()).toMatchObject([{ metrics: { diskFreeBytes: 9 * GIB, diskReserveBytes: 10 * GIB } }, {}]);
  await report(first, {});
  expect((await create()).status).toBe(201);
  expect(first?.live.size).toBe(1);
});

test("a build fails with the reason when no node has the disk for it", async () => {
  cluster = await startCluster({ ...BUILDING, config: { ...BUILDING.config, placementTimeoutMs: 100 } });
  await report(cluster.agent, { short: true });
  const requested = await request({ name: "app" });
  await start(requested);
  await expect
    .poll(() => status(requested))
    .toMatchObject({
      status: "error",
      reason: { message: expect.stringMatching(/^no node could build it: the disk of every node/) as unknown },
    });
  expect(cluster.agent.builds.size).toBe(0);
});

test("disks are promised up to SVC_NODE_DISK_OVERCOMMIT times their room, those of starts since the last report included", async () => {
  cluster = await startCluster({
    agent: { heartbeatMs: 0 },
    config: { nodeDiskOvercommit: 1, baseDiskMb: 10_240, nodeTimeoutMs: 600_000 },
  });
  await report(cluster.agent, { promisedBytes: 65 * GIB });
  const started = await create();
  expect([started.status, (await create()).status]).toEqual([201, 201]);
  expect(await create()).toMatchObject({
    status: 507,
    body: { message: expect.stringMatching(/promise 10240 MiB more .*SVC_NODE_DISK_OVERCOMMIT/) as unknown },
  });
  // A paused sandbox keeps its disk, and only the node's report frees the disk of one that ended.
  const { sandboxID } = started.body as { sandboxID: string };
  expect((await cluster.ask("DELETE", `/sandboxes/${sandboxID}`)).status).toBe(204);
  expect((await create()).status).toBe(507);
  await report(cluster.agent, { promisedBytes: 75 * GIB });
  expect((await create()).status).toBe(201);
});

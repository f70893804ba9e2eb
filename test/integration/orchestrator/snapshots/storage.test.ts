/** Lifetimes and quotas of paused sandboxes and snapshots on a fake agent, their sizes in lists, and the operators' report. */

import { afterEach, describe, expect, test } from "vitest";
import type { OrchestratorConfig } from "../../../../orchestrator/config.ts";
import type { StorageReport } from "../../../../shared/api/storage.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";

const MIB = 1024 ** 2;
const HOUR_MS = 3_600_000;

let cluster: Cluster;
afterEach(() => cluster.stop());

const { connect, create, eventsOf, pause, paused, post, read } = sandboxesOn(() => cluster);

async function started(config: Partial<OrchestratorConfig> = {}, agents = 1): Promise<void> {
  cluster = await startCluster({ agents, config });
}

async function snapshot(id: string): Promise<string> {
  const answer = await post(id, "snapshots", {});
  expect(answer.status, answer.text).toBe(201);
  return (answer.body as { snapshotID: string }).snapshotID;
}

async function snapshots(): Promise<{ snapshotID: string; storedBytes?: number }[]> {
  return (await cluster.ask("GET", "/snapshots")).body as { snapshotID: string; storedBytes?: number }[];
}

/** Data of the sandbox's last event. */
async function lastEvent(id: string): Promise<unknown> {
  const list = (await cluster.ask("GET", `/events/sandboxes/${id}`)).body as { eventData: unknown }[];
  return list[0]?.eventData;
}

/** Moves the pause of a sandbox two hours into the past, as if the clock had gone on. */
async function pausedLongAgo(id: string): Promise<void> {
  await cluster.database.query("update sandboxes set end_at = ? where id = ?", Date.now() - 2 * HOUR_MS, id);
}

describe("sizes", () => {
  test("of paused sandboxes and snapshots are in the lists and the detail, and not of running sandboxes", async () => {
    await started();
    cluster.agent.sizes = { memoryBytes: 5 * MIB, diskBytes: MIB };
    const { sandboxID } = await create();
    const snapshotID = await snapshot(sandboxID);
    expect(await snapshots()).toMatchObject([{ snapshotID, names: [], storedBytes: 6 * MIB }]);
    expect(await read(sandboxID)).not.toHaveProperty("storedBytes");
    expect((await pause(sandboxID)).status).toBe(204);
    expect(await read(sandboxID)).toMatchObject({ state: "paused", storedBytes: 6 * MIB });
    expect((await cluster.ask("GET", "/v2/sandboxes?state=paused")).body).toMatchObject([{ storedBytes: 6 * MIB }]);
    expect((await connect(sandboxID)).status).toBe(201);
    const [listed] = (await cluster.ask("GET", "/sandboxes")).body as object[];
    expect(listed).toMatchObject({ sandboxID, state: "running" });
    expect(listed).not.toHaveProperty("storedBytes");
  });

  test("of a pause that the node made by itself, and of one whose answer was lost, are known too", async () => {
    await started();
    cluster.agent.sizes = { memoryBytes: 7, diskBytes: 1 };
    const one = await create();
    const [executionId = ""] = [...cluster.agent.live.keys()];
    cluster.agent.pauseByItself(executionId);
    await cluster.agent.beat();
    expect(await read(one.sandboxID)).toMatchObject({ state: "paused", storedBytes: 8 });
    let calls = 0;
    cluster.agent.onPause = (_request, take) => {
      take();
      if (calls++ === 0) throw new AppError("node_unreachable", "lost");
    };
    const { sandboxID } = await paused();
    expect(await read(sandboxID)).toMatchObject({ storedBytes: 8 });
  });
});

describe("a quota of a project over all nodes", () => {
  /** A sample of the node: what a snapshot of any sandbox would take. */
  const uses = (memoryMb: number) => {
    for (const agent of cluster.agents) {
      agent.metrics = [
        {
          at: 1,
          cpuCount: 1,
          cpuUsedPct: 0,
          memUsed: memoryMb * MIB,
          memTotal: 0,
          memCache: 0,
          diskUsed: 0,
          diskTotal: 0,
        },
      ];
      agent.sizes = { memoryBytes: memoryMb * MIB, diskBytes: 0 };
    }
  };

  test("refuses pauses with memory, snapshots and forks beyond it with the quota, what is stored and the way out", async () => {
    await started({ projectStoredQuotaMb: 250 }, 2);
    uses(100);
    await paused();
    const source = await create();
    await snapshot(source.sandboxID);
    const { sandboxID } = await create();
    const refused = await pause(sandboxID);
    expect(refused.status).toBe(507);
    expect(refused.body).toMatchObject({
      error_code: "no_space",
      message: expect.stringMatching(
        /quota of 250 MiB .*\(SVC_PROJECT_STORED_QUOTA_MB\).* take 200 MiB, and this one would add up to 100 MiB; delete/,
      ) as string,
    });
    expect((await post(sandboxID, "snapshots", {})).status).toBe(507);
    expect((await post(sandboxID, "fork", { count: 1 })).status).toBe(507);
    expect(await snapshots()).toHaveLength(1);
    expect(await read(sandboxID)).toMatchObject({ state: "running" });
    expect(cluster.agents.flatMap((agent) => [...agent.snapshots.keys()])).toHaveLength(2);
    // Another project has a quota of its own.
    const { key } = await cluster.addProject("Other");
    const made = await cluster.ask("POST", "/v2/sandboxes", { key, body: { templateID: "base" } });
    const { sandboxID: other } = made.body as { sandboxID: string };
    expect((await cluster.ask("POST", `/sandboxes/${other}/pause`, { key })).status).toBe(204);
    // Without memory it always works, and what was deleted makes room.
    expect((await pause(sandboxID, { memory: false })).status).toBe(204);
    const [first] = await snapshots();
    expect((await cluster.ask("DELETE", `/templates/${encodeURIComponent(first?.snapshotID ?? "")}`)).status).toBe(204);
    expect((await post(source.sandboxID, "fork", { count: 1 })).status).toBe(201);
    // The checkpoint of a fork counts only while its forks start.
    expect((await pause(source.sandboxID)).status).toBe(204);
  });

  test("holds in a burst, counts a sandbox without a sample with its whole memory, and keeps the disk at the timeout", async () => {
    await started({ projectStoredQuotaMb: 2_500, baseMemoryMb: 1_000 });
    cluster.agent.sizes = { memoryBytes: 1_000 * MIB, diskBytes: 0 };
    const made = await Promise.all([1, 2, 3, 4].map(() => create()));
    const statuses = (await Promise.all(made.map(({ sandboxID }) => pause(sandboxID)))).map(({ status }) => status);
    expect(statuses.sort((a, b) => a - b)).toEqual([204, 204, 507, 507]);
    const { sandboxID } = await create({ autoPause: true, timeout: 1 });
    await expect.poll(() => eventsOf(sandboxID)).toEqual(["created", "paused"]);
    expect(await lastEvent(sandboxID)).toMatchObject({ memory: false });
  });

  test("lets a sandbox that was started without its memory be paused again in the place of its former snapshot", async () => {
    await started({ projectStoredQuotaMb: 150 });
    uses(100);
    const { sandboxID } = await paused();
    expect((await connect(sandboxID, { memory: false })).status).toBe(201);
    expect((await pause((await create()).sandboxID)).status).toBe(507);
    expect((await pause(sandboxID)).status).toBe(204);
  });
});

describe("a lifetime", () => {
  const HOURS = { pausedKeepHours: 1, snapshotKeepHours: 1, reconcileEveryMs: 20 };

  test("ends paused sandboxes that are older, with an event, and no others", async () => {
    await started(HOURS);
    const [old, young, resumed] = [await paused(), await paused(), await paused()];
    const [snapshotId] = [...cluster.agent.snapshots.keys()];
    await connect(resumed.sandboxID, { timeout: 600 });
    await pausedLongAgo(old.sandboxID);
    await expect.poll(() => eventsOf(old.sandboxID)).toEqual(["created", "paused", "killed"]);
    expect(await lastEvent(old.sandboxID)).toMatchObject({ reason: "expired", kill_reason: "expired" });
    expect((await cluster.ask("GET", `/sandboxes/${old.sandboxID}`)).status).toBe(404);
    expect((await connect(old.sandboxID)).status).toBe(404);
    await expect.poll(() => cluster.agent.removed).toContain(snapshotId);
    expect(await read(young.sandboxID)).toMatchObject({ state: "paused" });
    expect(await read(resumed.sandboxID)).toMatchObject({ state: "running" });
  });

  test("does not end a sandbox that is resumed at the same moment", async () => {
    await started(HOURS);
    const [{ sandboxID }, other] = [await paused(), await paused()];
    // While the node resumes the sandbox, a round ends another one.
    cluster.agent.onStart = async (_start, run) => {
      await pausedLongAgo(sandboxID);
      await pausedLongAgo(other.sandboxID);
      await expect.poll(() => eventsOf(other.sandboxID)).toContain("killed");
      run();
    };
    expect((await connect(sandboxID, { timeout: 600 })).status).toBe(201);
    expect(await read(sandboxID)).toMatchObject({ state: "running" });
    expect(await eventsOf(sandboxID)).toEqual(["created", "paused", "resumed"]);
  });

  test("ends snapshots that were not used for longer, with an event of their source, and none that is in use", async () => {
    await started(HOURS);
    const source = await create();
    const unused = await snapshot(source.sandboxID);
    const [snapshotId = ""] = [...cluster.agent.snapshots.keys()];
    const used = await snapshot(source.sandboxID);
    await create({ templateID: used });
    await cluster.database.query("update builds set finished_at = ? where kind = 'snapshot'", Date.now() - 2 * HOUR_MS);
    await expect.poll(() => eventsOf(source.sandboxID)).toContain("snapshot_deleted");
    expect(await lastEvent(source.sandboxID)).toEqual({ snapshot_id: snapshotId, reason: "expired" });
    await expect.poll(() => cluster.agent.removed).toEqual([snapshotId]);
    expect((await snapshots()).map(({ snapshotID }) => snapshotID)).toEqual([used]);
    const gone = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: unused } });
    expect(gone.status).toBe(404);
    expect(await read(source.sandboxID)).toMatchObject({ state: "running" });
  });
});

describe("the operators' report", () => {
  const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };

  test("says by node what no record references, and by project what expires soon and what is largest", async () => {
    await started({ pausedKeepHours: 3, projectStoredQuotaMb: 5_000 }, 2);
    const [one, two] = cluster.agents;
    if (one === undefined || two === undefined) throw new Error("two agents");
    one.onGarbage = () => ({
      memory: [{ snapshotId: "left", bytes: 5 }, { snapshotId: "unknown" }],
      images: [{ image: "sha256:1", snapshotId: "left" }],
      buildImages: ["svc/build:1"],
      layers: [{ image: "svc/layer:1", bytes: 9 }],
    });
    two.onGarbage = () => {
      throw new AppError("unavailable", "the node is starting");
    };
    for (const agent of cluster.agents) agent.sizes = { memoryBytes: 3, diskBytes: 4 };
    const { sandboxID } = await paused();
    await snapshot((await create()).sandboxID);
    const answer = await cluster.ask("GET", "/admin/storage", admin);
    expect(answer.status, answer.text).toBe(200);
    const { nodes, projects } = answer.body as StorageReport;
    expect(nodes).toMatchObject([
      {
        nodeID: "n1",
        error: null,
        garbage: {
          memory: [
            { snapshotID: "left", bytes: 5 },
            { snapshotID: "unknown", bytes: null },
          ],
          images: [{ image: "sha256:1", snapshotID: "left" }],
          buildImages: ["svc/build:1"],
          layers: [{ image: "svc/layer:1", bytes: 9 }],
        },
      },
      { nodeID: "n2", error: "the node is starting", garbage: null },
    ]);
    expect(projects).toMatchObject([
      {
        teamID: cluster.teamId,
        name: "Test Project",
        storedBytes: 14,
        quotaBytes: 5_000 * MIB,
        pausedCount: 1,
        snapshotCount: 1,
        expiringSoon: [{ kind: "paused", id: sandboxID, storedBytes: 7, inUse: false }],
      },
    ]);
    const [project] = projects;
    expect(project?.largest.map(({ kind }) => kind).sort()).toEqual(["paused", "snapshot"]);
    const [soon] = project?.expiringSoon ?? [];
    expect(Date.parse(soon?.expiresAt ?? "") - Date.parse(soon?.unusedSince ?? "")).toBe(3 * HOUR_MS);
  });

  test("is for operators only", async () => {
    await started();
    expect((await cluster.ask("GET", "/admin/storage")).status).toBe(401);
  });
});

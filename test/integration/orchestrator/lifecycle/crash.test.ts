/** The orchestrator dies at any line of a transition: a restart and reports repair the state that the database then has. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";

let cluster: Cluster;
beforeEach(async () => {
  cluster = await startCluster({
    config: { orphanGraceMs: 100, missingGraceMs: 200, reconcileEveryMs: 50 },
  });
});
afterEach(() => cluster.stop());

const SNAPSHOT = "00000000-0000-4000-8000-00000000000a";

const { create } = sandboxesOn(() => cluster);

/** Leaves the database as a process leaves it that is killed after this write. */
async function crashedAfter(statement: string, ...values: unknown[]): Promise<void> {
  await cluster.restart(undefined, async () => {
    await cluster.database.query(statement, ...values);
  });
}

async function settled(id: string): Promise<string | undefined> {
  await cluster.agent.beat();
  const answer = await cluster.ask("GET", `/sandboxes/${id}`);
  return answer.status === 200 ? (answer.body as SandboxDetail).state : undefined;
}

async function row(id: string): Promise<Record<string, unknown>> {
  const [found] = await cluster.database.query("select * from sandboxes where id = ?", id);
  if (found === undefined) throw new Error(`there is no record of ${id}`);
  return found;
}

describe("pause", () => {
  const begun =
    "update sandboxes set state = 'pausing', pending_snapshot_id = ?, pending_snapshot_memory = 1, deadline_at = ? where id = ?";

  test("interrupted between the record and the node's work is carried out", async () => {
    const { sandboxID: id } = await create();
    await crashedAfter(begun, SNAPSHOT, Date.now() + 60_000, id);
    expect(await settled(id)).toBe("paused");
    await expect.poll(() => cluster.agent.live.size).toBe(0);
    await expect.poll(async () => (await row(id)).state).toBe("paused");
    expect(await row(id)).toMatchObject({ snapshot_id: SNAPSHOT, snapshot_memory: 1, pending_snapshot_id: null });
    expect((await cluster.ask("POST", `/v2/sandboxes/${id}/connect`)).status).toBe(201);
  });

  test("interrupted between the node's work and its answer takes no second snapshot", async () => {
    const { sandboxID: id } = await create();
    const [executionId = ""] = [...cluster.agent.live.keys()];
    const taken = cluster.agent.pauseByItself(executionId, SNAPSHOT);
    expect(taken).toBe(SNAPSHOT);
    await crashedAfter(begun, SNAPSHOT, Date.now() + 60_000, id);
    await expect.poll(async () => (await settled(id)) && (await row(id)).state).toBe("paused");
    expect(cluster.agent.snapshots.size).toBe(1);
    expect(cluster.agent.removed).toEqual([]);
  });
});

describe("resume", () => {
  const begun =
    "update sandboxes set state = 'starting', execution_id = ?, resume_memory = 1, resume_s = 300, deadline_at = ? where id = ?";
  const EXECUTION = "00000000-0000-4000-8000-00000000000b";

  test("interrupted between the record and the node's work starts exactly one execution", async () => {
    const { sandboxID: id } = await create();
    await cluster.ask("POST", `/sandboxes/${id}/pause`);
    await crashedAfter(begun, EXECUTION, Date.now() + 60_000, id);
    await expect.poll(() => settled(id)).toBe("running");
    expect([...cluster.agent.live.keys()]).toEqual([EXECUTION]);
    await expect.poll(() => cluster.agent.snapshots.size).toBe(0);
  });

  test("whose snapshot is missing leaves the sandbox paused, and the next caller gets the reason", async () => {
    const { sandboxID: id } = await create();
    await cluster.ask("POST", `/sandboxes/${id}/pause`);
    cluster.agent.snapshots.clear();
    await crashedAfter(begun, EXECUTION, Date.now() + 60_000, id);
    await expect.poll(async () => (await settled(id)) && (await row(id)).state).toBe("paused");
    expect((await cluster.ask("POST", `/v2/sandboxes/${id}/connect`)).body).toMatchObject({
      error_code: "snapshot_files_missing",
    });
  });

  test("is not tried after an interrupted kill, which is finished and leaves nothing on the node", async () => {
    const { sandboxID: id } = await create();
    await cluster.ask("POST", `/sandboxes/${id}/pause`);
    await crashedAfter("update sandboxes set state = 'killing', end_reason = 'request' where id = ?", id);
    await expect.poll(() => settled(id)).toBeUndefined();
    await expect.poll(() => cluster.agent.snapshots.size).toBe(0);
  });
});

describe("snapshot", () => {
  test("that was being taken is abandoned and removed, and the sandbox continues", async () => {
    const { sandboxID: id } = await create();
    const [executionId = ""] = [...cluster.agent.live.keys()];
    cluster.agent.checkpointByItself(executionId, SNAPSHOT);
    await crashedAfter(
      "update sandboxes set state = 'snapshotting', pending_snapshot_id = ?, pending_snapshot_memory = 1, deadline_at = ? where id = ?",
      SNAPSHOT,
      Date.now() + 60_000,
      id,
    );
    await expect.poll(async () => (await settled(id)) && (await row(id)).state).toBe("running");
    await expect.poll(() => cluster.agent.snapshots.size).toBe(0);
    expect([...cluster.agent.live.keys()]).toEqual([executionId]);
    expect((await cluster.ask("POST", `/sandboxes/${id}/fork`)).status).toBe(201);
  });

  test("for interrupted forks is removed with the half-made forks, and the source stays", async () => {
    const { sandboxID: id } = await create();
    const [executionId = ""] = [...cluster.agent.live.keys()];
    cluster.agent.checkpointByItself(executionId, SNAPSHOT);
    await crashedAfter(
      `insert into builds (id, template_id, status, kind, image, cpu_count, memory_mb, disk_mb, envd_version, node_id,
         source_sandbox_id, created_at, updated_at)
       select ?, template_id, 'ready', 'fork', 'x', 1, 128, 0, '0', 'n1', id, created_at, created_at from sandboxes
       where id = ?`,
      SNAPSHOT,
      id,
    );
    await expect.poll(async () => (await settled(id)) && cluster.agent.snapshots.size).toBe(0);
    expect(await settled(id)).toBe("running");
  });
});

test("unknown snapshots are removed after their grace period, needed ones never", async () => {
  const { sandboxID: id } = await create();
  await cluster.ask("POST", `/sandboxes/${id}/pause`);
  const [own = ""] = [...cluster.agent.snapshots.keys()];
  const stored = cluster.agent.snapshots.get(own);
  if (stored === undefined) throw new Error("nothing stored");
  cluster.agent.snapshots.set(SNAPSHOT, { ...stored, snapshotId: SNAPSHOT, sandboxId: "inobody" });
  expect((await cluster.agent.beat()).deleteSnapshots).toEqual([]);
  await expect.poll(async () => (await cluster.agent.beat()) && [...cluster.agent.snapshots.keys()]).toEqual([own]);
});

/** Metrics of changes of state: each kind is measured, a failure has its code, and no label holds an id. */

import { expect, onTestFinished, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import { ADMIN_TOKEN, startCluster } from "../../../support/cluster/cluster.ts";

test("pauses, resumes, forks and rewinds are measured by result, their parts by name, and failed snapshots by reason", async () => {
  const cluster = await startCluster();
  onTestFinished(() => cluster.stop());
  const ask = async (path: string, body: object = {}) => {
    const { status, body: answer } = await cluster.ask("POST", path, { body });
    return { status, ...(answer as { sandboxID?: string; snapshotID?: string } | undefined) };
  };
  const { sandboxID = "" } = await ask("/v2/sandboxes", { templateID: "base" });
  const of = `/sandboxes/${sandboxID}`;
  const { snapshotID } = await ask(`${of}/snapshots`);
  expect((await ask(`${of}/pause`)).status).toBe(204);
  expect((await ask(`${of}/resume`)).status).toBe(201);
  expect((await ask(`${of}/fork`, { count: 2 })).status).toBe(201);
  expect((await ask(`${of}/rewind`, { snapshotID })).status).toBe(200);
  const fails = () => Promise.reject(new AppError("snapshot_failed", "it uses io_uring"));
  cluster.agent.onPause = fails;
  cluster.agent.onCheckpoint = fails;
  expect((await ask(`${of}/pause`)).status).toBeGreaterThanOrEqual(400);
  expect((await ask(`${of}/fork`)).status).toBeGreaterThanOrEqual(400);

  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const { text } = await cluster.ask("GET", "/metrics", { key: null, headers });
  const counts = text.split("\n").filter((line) => /^svc_sandbox_(pause|resume|fork|rewind)\w+_count/.test(line));
  expect(counts).toEqual([
    'svc_sandbox_pause_duration_seconds_count{result="ok"} 1',
    'svc_sandbox_pause_duration_seconds_count{result="snapshot_failed"} 1',
    'svc_sandbox_resume_duration_seconds_count{result="ok"} 1',
    'svc_sandbox_fork_duration_seconds_count{result="ok"} 1',
    'svc_sandbox_fork_duration_seconds_count{result="snapshot_failed"} 1',
    'svc_sandbox_rewind_duration_seconds_count{result="ok"} 1',
  ]);
  expect(text).toContain('svc_snapshot_failures_total{reason="snapshot_failed"} 2');
  expect(text).toContain('svc_sandbox_phase_duration_seconds_count{op="create",phase="place"} 1');
  expect(text).toContain('svc_sandbox_phase_duration_seconds_count{op="fork",phase="checkpoint"} 1');
  expect(text).not.toContain(sandboxID);
});

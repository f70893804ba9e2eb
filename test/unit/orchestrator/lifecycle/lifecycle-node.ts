/**
 * A node with the containers and snapshots of one sandbox. It may refuse calls, and its answers may be lost. It notes when two
 * processes that live work on the sandbox at the same time.
 */

import type { StartRequest, StoredSnapshot } from "../../../../shared/agent-api/routes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import type { EgressPolicy } from "../../../../shared/policy/egress-policy.ts";

export const ID = "isandbox";

/** A fault of the next call. */
export type Fault = "refuse" | "break" | "silent before" | "silent after";

interface TakeSnapshotCall {
  readonly params: { readonly executionId: string };
  readonly body: { readonly snapshotId: string; readonly memory: boolean };
}

/** The process that makes a call. */
interface Caller {
  readonly is: boolean;
}

export type LifecycleAgent = ReturnType<ReturnType<typeof lifecycleNode>["agentFor"]>;

export function lifecycleNode(step: () => Promise<void>) {
  const live = new Map<string, EgressPolicy>();
  const snapshots = new Map<string, StoredSnapshot>();
  const stopped = new Set<string>();
  const faults: Fault[] = [];
  /** Calls under way that a living process must not make while another one does: all but those that a kill makes. */
  const working: { readonly name: string; readonly caller: Caller }[] = [];
  const clashes: string[] = [];

  async function alone<T>(name: string, caller: Caller, call: () => Promise<T>): Promise<T> {
    for (const other of working)
      if (other.caller !== caller && other.caller.is) clashes.push(`${name} during ${other.name} of another process`);
    const mine = { name, caller };
    working.push(mine);
    try {
      return await call();
    } finally {
      working.splice(working.indexOf(mine), 1);
    }
  }

  /**
   * One call to the node: it arrives late, the node may refuse it unless the work is `done` already, and its answer may be
   * lost. A node that breaks fails without looking at `done`.
   */
  async function called<T>(work: () => T, done = () => false): Promise<T> {
    await step();
    const fault = faults.shift();
    if (fault === "refuse" && !done()) throw new AppError("snapshot_failed", "refused");
    if (fault === "break") throw new AppError("unavailable", "broken");
    if (fault === "silent before") throw new AppError("node_unreachable", "silent");
    const result = work();
    if (fault === "silent after") throw new AppError("node_unreachable", "silent");
    await step();
    return result;
  }

  function take(kind: StoredSnapshot["kind"], executionId: string, body: { snapshotId: string; memory: boolean }) {
    const known = snapshots.get(body.snapshotId);
    if (known === undefined) {
      if (!live.has(executionId)) throw new AppError("not_found", "no such execution");
      const { snapshotId, memory } = body;
      const sizes = { memoryBytes: 0, diskBytes: 0, takenAt: 0 };
      snapshots.set(snapshotId, { snapshotId, kind, sandboxId: ID, executionId, memory, ...sizes });
      if (kind === "pause") live.delete(executionId);
    }
    return { ...snapshots.get(body.snapshotId), image: "copy" };
  }

  const agentFor = (caller: Caller) => ({
    startExecution: ({ params, body }: { params: { executionId: string }; body: StartRequest }) =>
      alone("start", caller, () =>
        called(
          () => {
            const { executionId } = params;
            if (stopped.has(executionId)) throw new AppError("conflict", "stopped");
            const stored = snapshots.get(body.origin?.snapshotId ?? "");
            if (!live.has(executionId)) {
              const replaced = body.origin?.replaces;
              if (replaced !== undefined && !live.has(replaced)) throw new AppError("sandbox_not_found", "not here");
              if (stored === undefined) throw new AppError("snapshot_files_missing", "missing");
              if (replaced !== undefined) live.delete(replaced);
              live.set(executionId, body.egress);
            }
            const restored = body.origin?.memory === true && stored?.memory === true ? "memory" : "disk";
            return {
              executionId,
              sandboxId: ID,
              address: "127.0.0.1",
              envdVersion: "0",
              startedAt: 0,
              warm: false,
              restored,
            };
          },
          () => live.has(params.executionId),
        ),
      ),
    replaceEgress: ({ params, body }: { params: { executionId: string }; body: EgressPolicy }) =>
      alone("change of the policy", caller, () =>
        called(() => {
          if (!live.has(params.executionId)) throw new AppError("not_found", "no such execution");
          live.set(params.executionId, body);
          return { trust: "applied" as const };
        }),
      ),
    stopExecution: ({ params }: { params: { executionId: string } }) =>
      called(() => {
        stopped.add(params.executionId);
        live.delete(params.executionId);
      }),
    pauseExecution: (call: TakeSnapshotCall) =>
      alone("pause", caller, () =>
        called(
          () => take("pause", call.params.executionId, call.body),
          () => snapshots.has(call.body.snapshotId),
        ),
      ),
    checkpointExecution: (call: TakeSnapshotCall) =>
      alone("checkpoint", caller, () => called(() => take("checkpoint", call.params.executionId, call.body))),
    deleteSnapshot: ({ params }: { params: { snapshotId: string } }) =>
      called(() => void snapshots.delete(params.snapshotId)),
  });

  return { live, snapshots, faults, clashes, agentFor };
}

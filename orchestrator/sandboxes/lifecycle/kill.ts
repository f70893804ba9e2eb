/** Ends sandboxes: at a request, a timeout, the loss of the node, or their exit. Every path makes the same move. */

import type { ExitReport } from "../../../shared/agent-api/routes.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { RoutingTable } from "../../routing-table.ts";
import type { SnapshotRemover } from "../../snapshots/removal.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { MoveIf } from "../../store/sandboxes/sandboxes.ts";
import type { Store } from "../../store/store.ts";
import type { Transitions } from "./transitions.ts";

export type EndReason = "request" | "admin" | "timeout" | "orphaned" | "node_lost" | "abandoned" | ExitReport["reason"];

export interface Ending {
  /** False: there is nothing to kill. All callers that kill the same sandbox share one transition. */
  kill(id: string, reason: EndReason): Promise<boolean>;
  /** Kills the sandbox only if its end has passed when the move is made. */
  expire(record: SandboxRecord): Promise<boolean>;
  /** Kills a paused sandbox only if it is still paused with this snapshot, since a time not later than `before`. */
  expirePaused(paused: { readonly id: string; readonly snapshotId: string }, before: number): Promise<boolean>;
  /** The execution has ended on this node. No effect for another execution or another node. */
  ended(
    exit: Pick<ExitReport, "sandboxId" | "executionId"> & { readonly nodeId: string },
    reason: EndReason,
  ): Promise<boolean>;
  /** Asks a node to end an execution; limited, never throws: the node's next report repairs what was missed. */
  end(nodeId: string, executionId: string): Promise<void>;
}

export interface EndingDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly routes: RoutingTable;
  readonly transitions: Transitions;
  readonly now: () => number;
  readonly log: Log;
  readonly snapshots: SnapshotRemover;
  readonly stopTimeoutMs: number;
  /** How long a kill waits for a pause or snapshot under way. */
  readonly snapshotTimeoutMs: number;
  /** Counts the end for the metrics. */
  observe(reason: EndReason): void;
}

export function createEnding(deps: EndingDeps): Ending {
  const { store, routes, now } = deps;

  async function end(nodeId: string, executionId: string): Promise<void> {
    try {
      await deps.nodes.agent(nodeId).stopExecution({ params: { executionId } }, { timeoutMs: deps.stopTimeoutMs });
    } catch (error) {
      deps.log.warn({ err: error, nodeId, executionId }, "could not ask a node to stop an execution");
    }
  }

  /** killing → gone. The route is removed first, so that no request reaches a dying sandbox. */
  async function finish(record: SandboxRecord, reason: string): Promise<void> {
    await routes.remove(record.id, record.executionId, "killed");
    await end(record.nodeId, record.executionId);
    // The execution first, then its snapshots: a running sandbox must not lose the files below it.
    for (const snapshot of [record.snapshot, record.pendingSnapshot]) {
      if (snapshot !== undefined) await deps.snapshots.remove(record.nodeId, snapshot.id);
    }
    const gone = await store.move(
      {
        id: record.id,
        to: "gone",
        when: { executionId: record.executionId },
        set: { endedAt: now(), endReason: reason },
      },
      { type: "killed", data: { reason } },
    );
    if (gone !== undefined) noteEnd(gone, reason);
  }

  function noteEnd(record: SandboxRecord, reason: string): void {
    deps.nodes.freed(record.nodeId, record);
    deps.log.info({ sandboxId: record.id, executionId: record.executionId, reason }, "sandbox ended");
  }

  async function killNow(id: string, reason: EndReason, when?: MoveIf): Promise<boolean> {
    const set = { endAt: now(), endReason: reason, deadlineAt: now() + deps.stopTimeoutMs * 2 };
    const killing = await store.move({ id, to: "killing", set, ...(when === undefined ? {} : { when }) });
    if (killing !== undefined) {
      deps.observe(reason);
      await finish(killing, reason);
      return true;
    }
    if (when !== undefined) return false;
    // Already `killing`, perhaps by a crashed process: finishing twice is harmless, the event is written once.
    const record = await store.sandboxes.get(id);
    if (record?.state !== "killing") return false;
    await finish(record, record.endReason ?? reason);
    return true;
  }

  const transition = (id: string, work: () => Promise<boolean>) =>
    deps.transitions.perform({
      sandboxId: id,
      aim: "gone",
      waitMs: deps.stopTimeoutMs * 3 + deps.snapshotTimeoutMs,
      work,
    });

  return {
    end,
    async kill(id, reason) {
      for (;;) {
        if (await transition(id, () => killNow(id, reason))) return true;
        // The caller joined a timeout whose end had moved, or the end of another execution, so the kill is still to do.
        const record = await store.sandboxes.get(id);
        if (record === undefined || record.state === "gone") return false;
      }
    },
    expire: (record) => transition(record.id, () => killNow(record.id, "timeout", { endAtMost: now() })),
    expirePaused: ({ id, snapshotId }, before) =>
      transition(id, () => killNow(id, "expired", { from: ["paused"], snapshotId, endAtMost: before })),
    ended: ({ sandboxId, executionId, nodeId }, reason) =>
      transition(sandboxId, async () => {
        const gone = await store.move(
          {
            id: sandboxId,
            to: "gone",
            when: { executionId, nodeId, from: ["running", "pausing", "snapshotting", "killing"] },
            set: { endedAt: now(), endReason: reason },
          },
          { type: "killed", data: { reason } },
        );
        if (gone === undefined) return false;
        deps.observe(reason);
        await routes.remove(sandboxId, executionId, "lost");
        for (const snapshot of [gone.snapshot, gone.pendingSnapshot]) {
          if (snapshot !== undefined) deps.snapshots.removeSoon(gone.nodeId, snapshot.id);
        }
        noteEnd(gone, reason);
        return true;
      }),
  };
}

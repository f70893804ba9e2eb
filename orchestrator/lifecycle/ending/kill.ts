/** Ends sandboxes: at a request, a timeout, the loss of the node, or their exit. Every path makes the same move. */

import type { ExitReport } from "../../../shared/agent-api/routes.ts";
import { defined } from "../../../shared/defined.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { cleanDetail, type End, type EndReason } from "../../../shared/states/end-reason.ts";
import { statesBefore } from "../../../shared/states/sandbox-state.ts";
import type { MoveIf } from "../../store/sandboxes/move.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { NewEvent } from "../../store/store.ts";
import type { Core } from "../core.ts";
import { createUnrecordedKills } from "./unrecorded.ts";

export interface Ending {
  /** False: there is nothing to kill. All callers that kill the same sandbox share one transition. */
  kill(id: string, reason: EndReason): Promise<boolean>;
  /** Kills the sandbox only if its end has passed when the move is made. */
  expire(record: SandboxRecord): Promise<boolean>;
  /** Kills a paused sandbox only if it is still paused with this snapshot, since a time not later than `before`. */
  expirePaused(paused: { readonly id: string; readonly snapshotId: string }, before: number): Promise<boolean>;
  /**
   * The execution has ended on this node. No effect for another execution or another node. A sandbox that is being killed
   * keeps the reason of the kill.
   */
  ended(exit: Pick<ExitReport, "sandboxId" | "executionId"> & { readonly nodeId: string }, how: End): Promise<boolean>;
  /**
   * A paused sandbox, claimed for a resume, whose disk its node has lost. Part of the caller's transition. Its snapshot stays: the
   * node's next report has it held, from where an operator may take it back.
   */
  lost(record: SandboxRecord, detail: string): Promise<SandboxRecord | undefined>;
  /**
   * The sandbox's node is lost: whatever the sandbox was doing or had stored there is lost with it. False: it has ended, is being killed
   * or is another execution now.
   */
  nodeLost(record: SandboxRecord, detail?: string): Promise<boolean>;
  /** Asks a node to end an execution; limited, never throws: the node's next report repairs what was missed. */
  end(nodeId: string, executionId: string): Promise<void>;
  /** Records the kills that could not be recorded when they were made; never throws: the next call tries the rest again. */
  recordLate(): Promise<void>;
}

export interface EndingDeps {
  readonly core: Core;
  /** Counts the end for the metrics. */
  observe(reason: EndReason): void;
}

export function createEnding(deps: EndingDeps): Ending {
  const { store, routes, timeouts, now } = deps.core;
  const unrecorded = createUnrecordedKills(deps.core);

  async function end(nodeId: string, executionId: string): Promise<void> {
    try {
      await deps.core.nodes
        .agent(nodeId)
        .stopExecution({ params: { executionId } }, { timeoutMs: timeouts.stopTimeoutMs });
    } catch (error) {
      deps.core.log.warn({ err: error, nodeId, executionId }, "could not ask a node to stop an execution");
    }
  }

  /** killing → gone. The route is removed first, so that no request reaches a dying sandbox. */
  async function finish(record: SandboxRecord): Promise<void> {
    await routes.remove(record.id, record.executionId, "killed");
    // Before the one that it replaces: its end lets that one go on.
    if (record.rewind !== undefined) await end(record.nodeId, record.rewind.executionId);
    await end(record.nodeId, record.executionId);
    // The execution first, then its snapshots: a running sandbox must not lose the files below it.
    for (const snapshot of [record.snapshot, record.pendingSnapshot]) {
      if (snapshot !== undefined) await deps.core.snapshots.remove(record.nodeId, snapshot.id);
    }
    await bury(record);
  }

  /** killing → gone, with the reason of the kill. */
  async function bury({ id, executionId, end, endAt }: SandboxRecord): Promise<SandboxRecord | undefined> {
    const when = { executionId, from: ["killing" as const] };
    // The time that has been shown since the kill began.
    const gone = await store.move({ id, to: "gone", when, set: { endedAt: endAt } }, killed(end));
    if (gone !== undefined) noteEnd(gone);
    return gone;
  }

  function noteEnd(record: SandboxRecord): void {
    deps.core.nodes.freed(record.nodeId, record);
    deps.core.log.info({ sandboxId: record.id, executionId: record.executionId, ...record.end }, "sandbox ended");
  }

  /** A node that does not serve this store would go on running what the record calls ended. */
  async function refuseRefused(id: string): Promise<void> {
    if (!deps.core.nodes.list().some(({ refusal }) => refusal !== undefined)) return;
    const record = await store.sandboxes.get(id);
    const refusal = record === undefined ? undefined : deps.core.nodes.refused(record.nodeId);
    if (refusal !== undefined) throw new AppError("unavailable", refusal);
  }

  async function killNow(id: string, reason: EndReason, when?: MoveIf): Promise<boolean> {
    await refuseRefused(id);
    const set = { endAt: now(), end: { reason }, deadlineAt: now() + timeouts.stopTimeoutMs * 2 };
    const killing = await store
      .move({ id, to: "killing", set, ...defined({ when }) })
      .catch((error: unknown) => unrecorded.end(id, reason, { error, endAtMost: when?.endAtMost }));
    if (killing !== undefined) {
      deps.observe(reason);
      await finish(killing);
      return true;
    }
    if (when !== undefined) return false;
    // Already `killing`, perhaps by a crashed process: finishing twice is harmless, the event is written once.
    const record = await store.sandboxes.get(id);
    if (record?.state !== "killing") return false;
    await finish(record);
    return true;
  }

  const transition = (id: string, work: () => Promise<boolean>, more: { readonly shared?: boolean } = {}) =>
    deps.core.transitions.perform({
      sandboxId: id,
      aim: "gone",
      waitMs: timeouts.stopTimeoutMs * 3 + timeouts.snapshotTimeoutMs,
      work,
      ...more,
    });

  return {
    end,
    async recordLate() {
      for (const { id, executionId, reason } of unrecorded.list()) {
        try {
          await transition(id, () => killNow(id, reason, { executionId, from: ["running"] }));
          unrecorded.recorded(id);
        } catch (error) {
          deps.core.log.debug({ err: error, sandboxId: id }, "could not record the end of a sandbox yet");
        }
      }
    },
    async kill(id, reason) {
      for (;;) {
        if (await transition(id, () => killNow(id, reason), { shared: true })) return true;
        // The caller joined a timeout whose end had moved, or the end of another execution, so the kill is still to do.
        const record = await store.sandboxes.get(id);
        if (record === undefined || record.state === "gone") return false;
      }
    },
    expire: (record) => transition(record.id, () => killNow(record.id, "timeout", { endAtMost: now() })),
    expirePaused: ({ id, snapshotId }, before) =>
      transition(id, () => killNow(id, "expired", { from: ["paused"], snapshotId, endAtMost: before })),
    async lost({ id, executionId }, detail) {
      const end: End = { reason: "removed", detail: cleanDetail(detail) };
      const when = { executionId, from: ["starting" as const] };
      const set = { endedAt: now(), end, resumption: null };
      const gone = await store.move({ id, to: "gone", when, set }, killed(end));
      if (gone === undefined) return undefined;
      deps.observe(end.reason);
      noteEnd(gone);
      await routes.remove(id, executionId, "lost");
      return gone;
    },
    async nodeLost({ id, executionId, nodeId }, detail) {
      const end: End = { reason: "node_lost", detail };
      // Without the wait for transitions under way: what they try on the node fails, and then finds the sandbox gone.
      const when = { executionId, nodeId, from: statesBefore("gone") };
      // No record needs the snapshot that was being taken, so its build is removed.
      const set = { endedAt: now(), end, resumption: null, pendingSnapshot: null };
      const gone = await store.move({ id, to: "gone", when, set }, killed(end));
      if (gone === undefined) return false;
      deps.observe(end.reason);
      noteEnd(gone);
      await routes.remove(id, executionId, "lost");
      return true;
    },
    ended: ({ sandboxId, executionId, nodeId }, how) =>
      transition(sandboxId, async () => {
        const when = { executionId, nodeId, from: ["running", "pausing", "snapshotting", "rewinding"] as const };
        const set = { endedAt: now(), end: how };
        let gone = await store.move({ id: sandboxId, to: "gone", when, set }, killed(how));
        if (gone !== undefined) {
          deps.observe(how.reason);
          noteEnd(gone);
        } else {
          const record = await store.sandboxes.get(sandboxId);
          const killing = record?.state === "killing" && record.executionId === executionId && record.nodeId === nodeId;
          gone = killing ? await bury(record) : undefined;
        }
        if (gone === undefined) return false;
        await routes.remove(sandboxId, executionId, "lost");
        for (const snapshot of [gone.snapshot, gone.pendingSnapshot]) {
          if (snapshot !== undefined) deps.core.snapshots.removeSoon(gone.nodeId, snapshot.id);
        }
        return true;
      }),
  };
}

/** The event of an end. A record that is being killed has its end. */
function killed(end: End | undefined): NewEvent {
  const { reason, exitCode, detail } = end ?? { reason: "abandoned" };
  return {
    type: "killed",
    data: {
      reason,
      // The name that clients of the wire protocol know.
      kill_reason: reason,
      ...defined({ exit_code: exitCode, detail }),
    },
  };
}

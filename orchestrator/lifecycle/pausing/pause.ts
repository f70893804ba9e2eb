/**
 * running → pausing → paused. The record names the snapshot before the node is asked, so that a retry after a crash asks
 * for the same snapshot. When the node refuses, the sandbox stays running and its route returns; when the node does not
 * answer, the record stays `pausing`, because the outcome is unknown.
 */

import type { StoredSnapshot, TakenSnapshot } from "../../../shared/agent-api/routes.ts";
import { defined } from "../../../shared/defined.ts";
import { AppError, isError, isMemoryRefused } from "../../../shared/http/errors.ts";
import { storageFailure } from "../../../shared/http/storage-failures.ts";
import { newUuid } from "../../../shared/ids.ts";
import { cleanDetail } from "../../../shared/states/end-reason.ts";
import { callAgain } from "../../nodes/retry.ts";
import type { Project } from "../../store/projects/record.ts";
import type { SandboxRecord, Snapshot } from "../../store/sandboxes/record.ts";
import type { Room } from "../../store/storage/quota.ts";
import { storedBytesOf } from "../../store/storage/stored-bytes.ts";
import type { Core } from "../core.ts";
import { pauseUnrecorded } from "../ending/unrecorded.ts";
import type { History } from "../history.ts";
import { type ChangeOutcome, observed } from "../observed.ts";
import type { ProjectQuota } from "../snapshots/stored-quota.ts";

export interface Pausing {
  /**
   * Resolves when the snapshot is durable and the route removed. AppError 404, or 409 when paused or in transition.
   * @param frozen false: the node does not keep the container in memory. A pause that another process finishes after a
   *   crash keeps it.
   */
  pause(project: Project, id: string, memory: boolean, frozen?: boolean): Promise<void>;
  /** Pauses the sandbox only if its end has passed when the move is made. */
  expire(record: SandboxRecord): Promise<boolean>;
  /** Records a pause that the node made without a request while the orchestrator was away. */
  adopt(record: SandboxRecord, stored: StoredSnapshot): Promise<boolean>;
  /** Finishes a pause that a crash interrupted. */
  recover(record: SandboxRecord): Promise<void>;
}

export interface PausingDeps {
  readonly core: Core;
  /** Absent: projects have no quota over all nodes. */
  readonly quota?: ProjectQuota | undefined;
  /** Called with each paused sandbox, for caches of paused sandboxes. */
  onPaused(): void;
  observe(outcome: ChangeOutcome): void;
  /** Milliseconds that the parts of a pause took on the node, by name. */
  onParts(parts: readonly (readonly [string, number])[]): void;
}

/** Most characters of an event's reason: room for the problem, its evidence and the way out. */
const MAX_REASON = 512;

/** `paused` by this transition, or the state that prevented it. */
type Outcome = { readonly is: "paused" } | { readonly is: "not"; readonly record: SandboxRecord | undefined };

interface PauseAsk {
  readonly memory: boolean;
  readonly frozen?: boolean | undefined;
  /** Only if the sandbox's end is not later. */
  readonly endAtMost?: number;
  /** Why the memory is not kept although it was wanted; the event names it. */
  readonly reason?: string | undefined;
}

interface CompleteAsk extends Pick<PauseAsk, "frozen" | "reason"> {
  /** The node may have been asked before. */
  readonly repeated: boolean;
}

const PAUSED_BY_NODE = "the node could not store the memory when it paused the sandbox without a request";
const DEADLINE_SLACK_MS = 30_000;
const ROUNDS = 3;

export function createPausing(deps: PausingDeps): Pausing {
  const { store, routes, timeouts, now } = deps.core;

  function begin(id: string, work: () => Promise<Outcome>): Promise<Outcome> {
    return deps.core.transitions.perform({
      sandboxId: id,
      aim: "paused",
      waitMs: timeouts.snapshotTimeoutMs,
      work,
      shared: { is: "paused" },
    });
  }

  async function pauseNow(id: string, { memory, frozen, endAtMost, reason }: PauseAsk): Promise<Outcome> {
    const room = memory ? await roomFor(id) : undefined;
    const pendingSnapshot = { id: newUuid(), memory, reservedBytes: room?.bytes };
    const deadlineAt = now() + timeouts.snapshotTimeoutMs + timeouts.patienceMs + DEADLINE_SLACK_MS;
    const when = {
      from: ["running" as const],
      ...defined({ endAtMost, room }),
    };
    const pausing = await store
      .move({ id, to: "pausing", when, set: { pendingSnapshot, deadlineAt } })
      .catch((error: unknown) =>
        pauseUnrecorded({ id, error, endAtMost, body: requestOf(pendingSnapshot, frozen) }, deps.core),
      );
    if (pausing !== undefined) return complete(pausing, { repeated: false, frozen, reason });
    const record = await store.sandboxes.get(id);
    // An orchestrator that crashed began it, or nobody knows its outcome: or this caller would have joined.
    if (record?.state === "pausing") {
      await store.operations.take(id, "paused", ["pausing"]);
      return complete(record, { repeated: true });
    }
    // Another snapshot of the project may have taken the room since.
    if (record?.state === "running" && room !== undefined) await deps.quota?.check(record, room);
    return { is: "not", record };
  }

  /** The former snapshot of a sandbox that was started without memory is deleted with the new pause. */
  async function roomFor(id: string): Promise<Room | undefined> {
    const record = deps.quota === undefined ? undefined : await store.sandboxes.get(id);
    if (record?.state !== "running") return undefined;
    return deps.quota?.admit(record, record.snapshot?.size?.memoryBytes);
  }

  function complete(record: SandboxRecord, ask: CompleteAsk): Promise<Outcome> {
    return observed({ now, observe: (outcome) => deps.observe(outcome) }, () => completeNow(record, ask));
  }

  /** pausing → paused, or back to running with the node's reason. */
  async function completeNow(record: SandboxRecord, { repeated, frozen, reason }: CompleteAsk): Promise<Outcome> {
    const { id, executionId, nodeId, pendingSnapshot } = record;
    if (pendingSnapshot === undefined)
      throw new AppError("internal", `sandbox ${id} is pausing, but its record names no snapshot`);
    await routes.suspend(id, executionId);
    const body = requestOf(pendingSnapshot, frozen);
    let taken: TakenSnapshot;
    try {
      taken = await callAgain(
        () =>
          deps.core.nodes
            .agent(nodeId)
            .pauseExecution({ params: { executionId }, body }, { timeoutMs: timeouts.snapshotTimeoutMs }),
        { now, random: deps.core.random, patienceMs: timeouts.patienceMs, repeated },
      );
    } catch (failure) {
      if (isError(failure, "node_unreachable") || (await back(record, AppError.from(failure)))) throw failure;
      return nowOf(id, pendingSnapshot.id);
    }
    const snapshot = { id: pendingSnapshot.id, memory: taken.memory, size: storedBytesOf(taken) };
    return settle(record, snapshot, reason, taken.times);
  }

  /**
   * If the node has a snapshot nevertheless, reconciliation of its report adopts or deletes it. False: the sandbox has ended, or another
   * orchestrator has taken the pause over.
   */
  async function back({ id, executionId }: SandboxRecord, failure: AppError): Promise<boolean> {
    const running = await store.move({
      id,
      to: "running",
      when: { executionId, from: ["pausing"] },
      set: { pendingSnapshot: null },
      failure,
    });
    if (running !== undefined) routes.add(running);
    return running !== undefined;
  }

  /** What has become of a sandbox whose pause ended here without effect. */
  async function nowOf(id: string, snapshotId: string): Promise<Outcome> {
    const current = await store.sandboxes.get(id);
    if (current?.snapshot?.id === snapshotId && current.state === "paused") return { is: "paused" };
    return { is: "not", record: current };
  }

  /**
   * @param reason why the memory was not kept although it was wanted
   * @param times what the parts of the pause took on the node
   */
  async function settle(
    record: SandboxRecord,
    snapshot: Snapshot,
    reason?: string,
    times?: TakenSnapshot["times"],
  ): Promise<Outcome> {
    const { id, executionId } = record;
    const paused = await store.move(
      {
        id,
        to: "paused",
        when: { executionId, from: ["pausing"] },
        set: { snapshot, pendingSnapshot: null, endAt: now() },
      },
      { type: "paused", data: { memory: snapshot.memory, ...defined({ reason }) } },
    );
    await routes.remove(id, executionId, "paused");
    if (paused === undefined) return nowOf(id, snapshot.id);
    deps.core.nodes.freed(paused.nodeId, paused);
    // The previous snapshot, kept by a start without memory, is superseded only now.
    const former = record.snapshot;
    if (former !== undefined && former.id !== snapshot.id) deps.core.snapshots.removeSoon(paused.nodeId, former.id);
    deps.onPaused();
    deps.onParts(Object.entries(times ?? {}).map(([part, ms]) => [`checkpoint.${part}`, ms]));
    deps.core.log.info(
      { sandboxId: id, executionId, snapshotId: snapshot.id, memory: snapshot.memory, times },
      "sandbox paused",
    );
    return { is: "paused" };
  }

  async function expire(record: SandboxRecord): Promise<boolean> {
    const { id, onTimeoutMemory } = record;
    try {
      return (await begin(id, () => pauseNow(id, { memory: onTimeoutMemory, endAtMost: now() }))).is === "paused";
    } catch (reason) {
      if (!onTimeoutMemory || !isMemoryRefused(reason) || storageFailure(reason) !== undefined) throw reason;
      // No caller waits, and the timeout has passed: keeps the disk alone, and records that in the event.
      deps.core.log.warn(
        { err: reason, sandboxId: id },
        "could not keep the memory at the timeout; pausing with the disk only",
      );
      const without = { memory: false, endAtMost: now(), reason: cleanDetail(reason.message, MAX_REASON) };
      return (await begin(id, () => pauseNow(id, without))).is === "paused";
    }
  }

  return {
    expire,

    async pause(project, id, memory, frozen = true) {
      const before = await store.sandboxes.get(id);
      refuse(before, project, id, deps.core.history);
      for (let round = 0; round < ROUNDS; round++) {
        const outcome = await begin(id, () => pauseNow(id, { memory, frozen }));
        if (outcome.is === "paused") return;
        refuse(outcome.record, project, id, deps.core.history);
        // Running: this caller joined a timeout whose end had moved, or another caller's failure.
      }
      throw new AppError("conflict", `Sandbox "${id}" is changing state`);
    },

    async adopt(record, stored) {
      const outcome = await begin(record.id, async () => {
        const pendingSnapshot = { id: stored.snapshotId, memory: stored.memory };
        const pausing = await store.move({
          id: record.id,
          to: "pausing",
          when: { executionId: stored.executionId, from: ["running"] },
          // Overdue at once: after a crash before the next move, housekeeping asks the node again.
          set: { pendingSnapshot, deadlineAt: now() },
        });
        if (pausing === undefined) return { is: "not", record };
        await routes.suspend(record.id, stored.executionId);
        const lost = record.onTimeoutMemory && !stored.memory;
        return settle(pausing, { ...pendingSnapshot, size: storedBytesOf(stored) }, lost ? PAUSED_BY_NODE : undefined);
      });
      return outcome.is === "paused";
    },

    async recover({ id }) {
      await begin(id, async () => {
        const record = await store.sandboxes.get(id);
        if (record?.state !== "pausing") return { is: "not", record };
        await store.operations.take(id, "paused", ["pausing"]);
        return complete(record, { repeated: true });
      });
    },
  };
}

function requestOf({ id: snapshotId, memory }: Snapshot, frozen: boolean | undefined) {
  return { snapshotId, memory, ...(frozen === false ? { frozen: false as const } : {}) };
}

/** Throws for every state from which a pause can neither start nor wait. */
function refuse(record: SandboxRecord | undefined, project: Project, id: string, history: History): void {
  if (record === undefined || record.projectId !== project.id) throw history.missing(project, id, record);
  switch (record.state) {
    case "gone":
    case "killing":
      throw history.missing(project, id, record);
    case "paused":
      throw new AppError("conflict", `Sandbox "${id}" is already paused`);
    case "starting":
      if (record.resumption === undefined) throw history.missing(project, id, record);
      return;
    case "running":
    case "pausing":
    case "snapshotting":
    case "rewinding":
      return;
  }
}

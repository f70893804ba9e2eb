/**
 * running → snapshotting → running: takes a snapshot of a sandbox in place; its route and connections stay. The same
 * write records the move and the build of the snapshot, so that a crash loses neither: the sandbox continues, the
 * snapshot is dropped, and the node is asked to delete what no record names.
 */

import type { TakeSnapshotBody } from "../../../shared/agent-api/routes.ts";
import { defined } from "../../../shared/defined.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { newUuid } from "../../../shared/ids.ts";
import { noTiming, type Timing } from "../../../shared/program/tracing/timing.ts";
import { callAgain } from "../../nodes/retry.ts";
import type { Build } from "../../store/builds/record.ts";
import type { Project } from "../../store/projects/record.ts";
import type { MoveIf } from "../../store/sandboxes/move.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import { storedBytesOf } from "../../store/storage/stored-bytes.ts";
import type { Core } from "../core.ts";
import type { ProjectQuota } from "./stored-quota.ts";

/** A template's tag. */
interface Target {
  readonly id: string;
  readonly tag: string;
}

interface CheckpointRequest {
  readonly kind: "snapshot" | "fork";
  /** false: the disk alone. */
  readonly memory: boolean;
  /** The template that gets the snapshot as a build; absent: the source's own template. */
  readonly template?: () => Promise<Target>;
  /** For messages, for example "forked". */
  readonly done: string;
  /** What to do while another checkpoint of the sandbox runs. */
  readonly same: "wait" | "refuse";
  /** Copies that start from it at once. */
  readonly copies?: number;
  /** What its parts on the node take. */
  readonly timing?: Timing;
}

export interface Checkpoint {
  readonly source: SandboxRecord;
  readonly build: Build;
}

export interface Checkpointing {
  /** @throws {AppError} 404; 409 when paused, in transition or (`refuse`) being checkpointed; or the node's reason */
  checkpoint(project: Project, id: string, ask: CheckpointRequest): Promise<Checkpoint>;
  /** Deletes the snapshot: no sandbox starts from it any more. */
  discard(build: Build): Promise<void>;
  /** Returns a sandbox to running whose checkpoint was interrupted. */
  recover(record: SandboxRecord): Promise<void>;
  /**
   * Removes what crashes left of snapshots that began before that time. What another orchestrator works on stays.
   * @param empty for templates that were made for a snapshot which was not begun
   */
  sweep(before: number, empty?: number): Promise<void>;
}

export interface CheckpointingDeps {
  readonly core: Core;
  /** Absent: projects have no quota over all nodes. */
  readonly quota?: ProjectQuota | undefined;
  /** Called with the error code of each snapshot that could not be taken. */
  onFailed(code: string): void;
}

const DEADLINE_SLACK_MS = 30_000;

export function createCheckpointing(deps: CheckpointingDeps): Checkpointing {
  const { store, timeouts, now } = deps.core;

  async function checkpointNow(project: Project, id: string, ask: CheckpointRequest): Promise<Checkpoint> {
    const before = await store.sandboxes.get(id);
    refuse(before, id, ask.done, (record) => deps.core.history.missing({ id: record?.projectId ?? "" }, id, record));
    const source = await store.templates.build(before.buildId);
    const conditions = await conditionsOf(project, before, ask);
    const target = await ask.template?.();
    const pendingSnapshot = { id: newUuid(), memory: ask.memory, reservedBytes: conditions.room?.bytes };
    const deadlineAt = now() + timeouts.snapshotTimeoutMs + timeouts.patienceMs + DEADLINE_SLACK_MS;
    const record = await store.beginSnapshot(
      {
        id,
        to: "snapshotting",
        when: {
          executionId: before.executionId,
          from: ["running"],
          ...conditions,
        },
        set: { pendingSnapshot, deadlineAt },
      },
      {
        id: pendingSnapshot.id,
        memory: pendingSnapshot.memory,
        kind: ask.kind,
        templateId: target?.id ?? before.templateId,
        source: before,
        image: source?.image ?? "",
        defaultUser: source?.defaultUser,
        defaultWorkdir: source?.defaultWorkdir,
        sealedSettings: source?.sealedSettings,
      },
    );
    if (record === undefined) throw await whyRefused(before, conditions);
    const ahead =
      ask.copies !== undefined && deps.core.nodes.get(record.nodeId)?.facts.capabilities.copiesAhead === true;
    const body = {
      snapshotId: pendingSnapshot.id,
      memory: ask.memory,
      durable: ask.kind !== "fork",
      ...(ahead ? defined({ copies: ask.copies }) : {}),
    };
    return takeSnapshot(record, body, { target, timing: ask.timing ?? noTiming });
  }

  /** The project's limits, which the move to `snapshotting` checks. */
  async function conditionsOf(
    project: Project,
    source: SandboxRecord,
    { kind }: CheckpointRequest,
  ): Promise<Pick<MoveIf, "room" | "snapshots">> {
    const room = await deps.quota?.admit(source);
    return {
      ...defined({ room }),
      // A fork's checkpoint is deleted with the fork's start.
      ...(kind === "snapshot" ? { snapshots: { most: deps.core.limits.of(project).snapshots } } : {}),
    };
  }

  /** Another snapshot of the project may have taken the room since, or the sandbox has another state now. */
  async function whyRefused(
    source: SandboxRecord,
    { room, snapshots }: Pick<MoveIf, "room" | "snapshots">,
  ): Promise<AppError> {
    if (room !== undefined) await deps.quota?.check(source, room);
    const refused =
      snapshots === undefined ? undefined : await deps.core.refusals.snapshot(source.projectId, snapshots.most);
    return refused ?? new AppError("conflict", `Sandbox "${source.id}" is changing state`);
  }

  async function takeSnapshot(
    record: SandboxRecord,
    body: TakeSnapshotBody,
    { target, timing }: { readonly target: Target | undefined; readonly timing: Timing },
  ): Promise<Checkpoint> {
    const { id, executionId, nodeId } = record;
    const { snapshotId } = body;
    const onward = {
      id,
      to: "running" as const,
      when: { executionId, from: ["snapshotting" as const] },
      set: { pendingSnapshot: null },
    };
    try {
      const taken = await callAgain(
        () =>
          deps.core.nodes
            .agent(nodeId)
            .checkpointExecution({ params: { executionId }, body }, { timeoutMs: timeouts.snapshotTimeoutMs }),
        { now, random: deps.core.random, patienceMs: timeouts.patienceMs },
      );
      for (const [part, ms] of Object.entries(taken.times ?? {})) timing.add(`checkpoint.${part}`, ms);
      const former = target === undefined ? undefined : await store.templates.tagged(target.id, target.tag);
      const finished = await store.finishSnapshot(
        onward,
        { id: snapshotId, image: taken.image, memory: taken.memory, size: storedBytesOf(taken) },
        target?.tag,
      );
      if (finished === undefined)
        throw new AppError("conflict", `Sandbox "${id}" ended, or the snapshot was deleted, while it was being taken`);
      if (former !== undefined) await supersede(former);
      deps.core.deadlines.soon(finished.record.endAt);
      return { source: finished.record, build: finished.build };
    } catch (reason) {
      // The sandbox continues on its node in every case, and no record names the snapshot.
      const goesOn = await store.giveUpSnapshot(snapshotId, onward);
      deps.core.snapshots.removeSoon(nodeId, snapshotId);
      deps.core.deadlines.soon(record.endAt);
      const failure = goesOn === undefined ? notOurs(id, AppError.from(reason)) : reason;
      deps.onFailed(AppError.from(failure).code);
      throw failure;
    }
  }

  /** The name moved to another snapshot: deletes this one unless something still names or needs it. */
  async function supersede(former: Build): Promise<void> {
    const tags = await store.templates.tagsOf(former.id);
    if (tags.length === 0 && !(await store.pausedSandboxes.usesTemplate(former.templateId, former.id)))
      await discard(former);
  }

  async function discard(build: Build): Promise<void> {
    await store.giveUpSnapshot(build.id);
    if (build.nodeId !== undefined) deps.core.snapshots.removeSoon(build.nodeId, build.id);
  }

  return {
    discard,

    async checkpoint(project, id, ask) {
      const record = await store.sandboxes.get(id);
      if (record === undefined || record.projectId !== project.id) throw deps.core.history.missing(project, id, record);
      return deps.core.transitions.perform({
        sandboxId: id,
        aim: "snapshotting",
        same: ask.same,
        waitMs: timeouts.snapshotTimeoutMs,
        work: () => checkpointNow(project, id, ask),
      });
    },

    async recover({ id }) {
      await deps.core.transitions.perform<undefined>({
        sandboxId: id,
        aim: "snapshotting",
        waitMs: timeouts.snapshotTimeoutMs,
        work: async () => {
          const record = await store.sandboxes.get(id);
          if (record?.state !== "snapshotting") return undefined;
          await store.operations.take(id, "snapshotting", ["snapshotting"]);
          const { executionId, pendingSnapshot, nodeId } = record;
          const when = { executionId, from: ["snapshotting" as const] };
          await store.giveUpSnapshot(pendingSnapshot?.id ?? "", {
            id,
            to: "running",
            when,
            set: { pendingSnapshot: null },
          });
          if (pendingSnapshot !== undefined) deps.core.snapshots.removeSoon(nodeId, pendingSnapshot.id);
          return undefined;
        },
      });
    },

    async sweep(before, empty = before) {
      const left = [...(await store.snapshots.leftForks(before)), ...(await store.snapshots.leftSnapshots(before))];
      for (const build of left) {
        deps.core.log.warn({ snapshotId: build.id, kind: build.kind }, "removing an interrupted snapshot");
        await discard(build);
      }
      await store.snapshots.dropEmpty(empty);
    },
  };
}

/** The sandbox has ended, or another orchestrator has taken its snapshot over and undone it: so the node's failure is no fault of its. */
function notOurs(id: string, failure: AppError): AppError {
  if (failure.status !== 500) return failure;
  const message = `Sandbox "${id}" ended, or another orchestrator has taken it over, while its snapshot was being taken`;
  return new AppError("conflict", message, { cause: failure });
}

/** Throws for every state in which no snapshot can be taken. */
function refuse(
  record: SandboxRecord | undefined,
  id: string,
  done: string,
  missing: (record: SandboxRecord | undefined) => AppError,
): asserts record is SandboxRecord {
  switch (record?.state) {
    case undefined:
    case "gone":
    case "killing":
      throw missing(record);
    case "running":
      return;
    case "paused":
    case "pausing":
      throw new AppError("conflict", `Sandbox "${id}" is paused and cannot be ${done}; resume it first`);
    case "starting":
    case "snapshotting":
    case "rewinding":
      throw new AppError("conflict", `Sandbox "${id}" is changing state`);
  }
}

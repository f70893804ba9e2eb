/**
 * running → snapshotting → running: a copy of a sandbox is made in place, its route and connections stay. The build that
 * the copy will be is written with the move, so that after a crash both are known: the sandbox goes on, the copy is given
 * up, and the node is told to remove what nobody names.
 */

import { AppError } from "../../../shared/http/errors.ts";
import { newUuid } from "../../../shared/ids.ts";
import type { Log } from "../../../shared/program/log.ts";
import { asked } from "../../nodes/calls.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { SnapshotRemover } from "../../snapshots/removal.ts";
import type { Project } from "../../store/projects.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Store } from "../../store/store.ts";
import type { Build } from "../../store/templates.ts";
import { notFound } from "../not-found.ts";
import type { Transitions } from "./transitions.ts";

interface CaptureAsk {
  readonly kind: "snapshot" | "fork";
  /** Which template the capture becomes a build of; absent: the source's own. */
  readonly template?: () => Promise<{ readonly id: string; readonly tag: string }>;
  /** For messages: "forked". */
  readonly done: string;
  /** While another capture is under way. */
  readonly same: "wait" | "refuse";
}

export interface Capture {
  readonly source: SandboxRecord;
  readonly build: Build;
}

export interface Capturing {
  /** AppError 404; 409 when it is paused, changing, or (`refuse`) being captured; else the node's reason. */
  capture(project: Project, id: string, ask: CaptureAsk): Promise<Capture>;
  /** Nobody starts from it any more. */
  discard(build: Build): Promise<void>;
  /** Lets a sandbox go on whose capture was cut short. */
  recover(record: SandboxRecord): Promise<void>;
  /** Removes what crashes left of captures from before that time. */
  sweep(before: number): Promise<void>;
}

export interface CapturingDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly transitions: Transitions;
  readonly snapshots: SnapshotRemover;
  readonly now: () => number;
  readonly log: Log;
  readonly captureTimeoutMs: number;
  readonly patienceMs: number;
  /** Its end may have passed meanwhile. */
  expiresAt(endAt: number): void;
}

const DEADLINE_SLACK_MS = 30_000;

export function createCapturing(deps: CapturingDeps): Capturing {
  const { store, now } = deps;

  async function captureNow(id: string, ask: CaptureAsk): Promise<Capture> {
    const before = await store.sandboxes.get(id);
    refuse(before, id, ask.done);
    const source = await store.templates.build(before.buildId);
    const target = await ask.template?.();
    const capture = { id: newUuid(), memory: true };
    const deadlineAt = now() + deps.captureTimeoutMs + deps.patienceMs + DEADLINE_SLACK_MS;
    const record = await store.beginCapture(
      {
        id,
        to: "snapshotting",
        when: { executionId: before.executionId, from: ["running"] },
        set: { capture, deadlineAt },
      },
      {
        ...capture,
        kind: ask.kind,
        templateId: target?.id ?? before.templateId,
        source: before,
        image: source?.image ?? "",
        defaultUser: source?.defaultUser,
        defaultWorkdir: source?.defaultWorkdir,
        sealedSettings: source?.sealedSettings,
      },
    );
    if (record === undefined) throw new AppError("conflict", `Sandbox "${id}" is changing state`);
    return copy(record, capture.id, target);
  }

  async function copy(
    record: SandboxRecord,
    snapshotId: string,
    target: { readonly id: string; readonly tag: string } | undefined,
  ): Promise<Capture> {
    const { id, executionId, nodeId } = record;
    const onward = {
      id,
      to: "running" as const,
      when: { executionId, from: ["snapshotting" as const] },
      set: { capture: null },
    };
    try {
      const captured = await asked(
        () =>
          deps.nodes
            .agent(nodeId)
            .checkpointExecution(
              { params: { executionId }, body: { snapshotId, memory: true } },
              { timeoutMs: deps.captureTimeoutMs },
            ),
        deps,
      );
      const former = target === undefined ? undefined : await store.templates.tagged(target.id, target.tag);
      const finished = await store.finishCapture(
        onward,
        { id: snapshotId, image: captured.image, memory: captured.memory },
        target?.tag,
      );
      if (finished === undefined) throw new AppError("conflict", `Sandbox "${id}" ended while it was being copied`);
      if (former !== undefined) await supersede(former);
      deps.expiresAt(finished.record.endAt);
      return { source: finished.record, build: finished.build };
    } catch (reason) {
      // Whatever the node did or did: the sandbox goes on there, and the copy is nobody's.
      await store.giveUpCapture(snapshotId, onward);
      deps.snapshots.removeSoon(nodeId, snapshotId);
      deps.expiresAt(record.endAt);
      throw reason;
    }
  }

  /** Its name means another capture now: it goes, unless something still names or needs it. */
  async function supersede(former: Build): Promise<void> {
    const tags = await store.templates.tagsOf(former.id);
    if (tags.length === 0 && !(await store.sleepers.usesTemplate(former.templateId, former.id))) await discard(former);
  }

  async function discard(build: Build): Promise<void> {
    await store.giveUpCapture(build.id);
    if (build.nodeId !== undefined) deps.snapshots.removeSoon(build.nodeId, build.id);
  }

  return {
    discard,

    async capture(project, id, ask) {
      const record = await store.sandboxes.get(id);
      if (record === undefined || record.projectId !== project.id) throw notFound(id);
      return deps.transitions.perform({
        sandboxId: id,
        aim: "snapshotting",
        same: ask.same,
        waitMs: deps.captureTimeoutMs,
        work: () => captureNow(id, ask),
      });
    },

    async recover({ id }) {
      await deps.transitions.perform<undefined>({
        sandboxId: id,
        aim: "snapshotting",
        waitMs: deps.captureTimeoutMs,
        work: async () => {
          const record = await store.sandboxes.get(id);
          if (record?.state !== "snapshotting") return undefined;
          const { executionId, capture, nodeId } = record;
          const when = { executionId, from: ["snapshotting" as const] };
          await store.giveUpCapture(capture?.id ?? "", { id, to: "running", when, set: { capture: null } });
          if (capture !== undefined) deps.snapshots.removeSoon(nodeId, capture.id);
          return undefined;
        },
      });
    },

    async sweep(before) {
      const left = [...(await store.snapshots.leftForks(before)), ...(await store.snapshots.leftCaptures(before))];
      for (const build of left) {
        deps.log.warn({ snapshotId: build.id, kind: build.kind }, "removing a capture that was cut short");
        await discard(build);
      }
      await store.snapshots.dropEmpty(before);
    },
  };
}

/** Throws for every state that no copy is made of. */
function refuse(record: SandboxRecord | undefined, id: string, done: string): asserts record is SandboxRecord {
  switch (record?.state) {
    case undefined:
    case "gone":
    case "killing":
      throw notFound(id);
    case "running":
      return;
    case "paused":
    case "pausing":
      throw new AppError("conflict", `Sandbox "${id}" is paused and cannot be ${done}; resume it first`);
    case "starting":
    case "snapshotting":
      throw new AppError("conflict", `Sandbox "${id}" is changing state`);
  }
}

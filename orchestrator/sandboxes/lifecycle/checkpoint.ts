/**
 * running → snapshotting → running: captures a sandbox in place; its route and connections stay. The same write records
 * the move and the build of the capture, so that a crash loses neither: the sandbox continues, the capture is dropped,
 * and the node is asked to delete what no record names.
 */

import { AppError } from "../../../shared/http/errors.ts";
import { newUuid } from "../../../shared/ids.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import { callAgain } from "../../nodes/retry.ts";
import type { SnapshotRemover } from "../../snapshots/removal.ts";
import type { Build } from "../../store/builds/record.ts";
import type { Project } from "../../store/projects.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Store } from "../../store/store.ts";
import { notFound } from "../not-found.ts";
import type { Transitions } from "./transitions.ts";

interface CaptureAsk {
  readonly kind: "snapshot" | "fork";
  /** The template that gets the capture as a build; absent: the source's own template. */
  readonly template?: () => Promise<{ readonly id: string; readonly tag: string }>;
  /** For messages, for example "forked". */
  readonly done: string;
  /** What to do while another capture runs. */
  readonly same: "wait" | "refuse";
}

export interface Capture {
  readonly source: SandboxRecord;
  readonly build: Build;
}

export interface Capturing {
  /** AppError 404; 409 when paused, in transition, or (`refuse`) being captured; else the node's reason. */
  capture(project: Project, id: string, ask: CaptureAsk): Promise<Capture>;
  /** No sandbox starts from the capture any more. */
  discard(build: Build): Promise<void>;
  /** Returns a sandbox to running whose capture was interrupted. */
  recover(record: SandboxRecord): Promise<void>;
  /** Removes what crashes left of captures that began before that time. */
  sweep(before: number): Promise<void>;
}

export interface CapturingDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly transitions: Transitions;
  readonly snapshots: SnapshotRemover;
  readonly now: () => number;
  readonly random: () => number;
  readonly log: Log;
  readonly captureTimeoutMs: number;
  readonly patienceMs: number;
  /** The sandbox's end may have passed meanwhile. */
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
      const captured = await callAgain(
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
      // Whatever the node did, the sandbox continues there, and no record names the capture.
      await store.giveUpCapture(snapshotId, onward);
      deps.snapshots.removeSoon(nodeId, snapshotId);
      deps.expiresAt(record.endAt);
      throw reason;
    }
  }

  /** The name moved to another capture: deletes this one unless something still names or needs it. */
  async function supersede(former: Build): Promise<void> {
    const tags = await store.templates.tagsOf(former.id);
    if (tags.length === 0 && !(await store.pausedSandboxes.usesTemplate(former.templateId, former.id)))
      await discard(former);
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
        deps.log.warn({ snapshotId: build.id, kind: build.kind }, "removing an interrupted capture");
        await discard(build);
      }
      await store.snapshots.dropEmpty(before);
    },
  };
}

/** Throws for every state that cannot be captured. */
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

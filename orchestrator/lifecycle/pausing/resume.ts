/**
 * paused → starting → running, on the node that has the snapshot, with a new execution id. Equal requests share it.
 * When the node refuses, the sandbox stays paused with its snapshot unchanged; when it does not answer, or its answer cannot be
 * recorded, it stays `starting`, and the next caller or housekeeping repeats the request for the same execution. No node is asked
 * to stop the execution, because that would lose the sandbox. When the node has lost its disk for good (`disk_lost`), the sandbox ends.
 */

import type { Started } from "../../../shared/agent-api/routes.ts";
import { defined } from "../../../shared/defined.ts";
import { AppError, isError } from "../../../shared/http/errors.ts";
import { newExecutionId } from "../../../shared/ids.ts";
import { allowsAnything } from "../../../shared/policy/egress-policy.ts";
import { toPolicy } from "../../network-policy/policy.ts";
import { UnderWay } from "../../store/operations/record.ts";
import type { StartLimits } from "../../store/projects/limits.ts";
import type { Resumption, SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Core } from "../core.ts";
import type { Ending } from "../ending/kill.ts";
import { notFound } from "../not-found.ts";
import { type ChangeOutcome, observed } from "../observed.ts";
import { isResuming } from "../record-state.ts";
import type { Elsewhere } from "../start/elsewhere.ts";
import { startAgain } from "../start/start-again.ts";

interface ResumeAsk extends Resumption {
  /** What the project may start. */
  readonly limit: StartLimits;
  readonly onTimeout?: "kill" | "pause";
  /** On the node that has it, also while that is drained. */
  readonly here?: boolean;
}

interface Resumed {
  readonly record: SandboxRecord;
  /** False: the sandbox was running, or this request joined another one's resume. */
  readonly own: boolean;
}

export interface Resuming {
  /** AppError with the reason when it stays paused; `sandbox_start_in_flight` when another kind of start runs. */
  resume(id: string, ask: ResumeAsk): Promise<Resumed>;
  /** Finishes a resume that a crash interrupted. */
  recover(record: SandboxRecord): Promise<void>;
}

export interface ResumingDeps {
  readonly core: Core;
  readonly ending: Ending;
  readonly elsewhere: Pick<Elsewhere, "nodeFor" | "bringBack">;
  observe(outcome: ChangeOutcome): void;
  /** Milliseconds that the parts of a resume took, by name. */
  onParts(parts: readonly (readonly [string, number])[]): void;
}

interface Done {
  readonly record: SandboxRecord;
  /** The request that started the execution; undefined when the sandbox was running already. */
  readonly by: ResumeAsk | undefined;
  /** The request asked for memory. */
  readonly memory: boolean;
}

const DEADLINE_SLACK_MS = 30_000;

export function createResuming(deps: ResumingDeps): Resuming {
  const { store, timeouts, now } = deps.core;
  /** Resumes under way in this process, by sandbox: whether they restore memory. */
  const underWay = new Map<string, boolean>();

  function begin(id: string, ask: ResumeAsk | undefined): Promise<Done> {
    return deps.core.transitions.perform({
      sandboxId: id,
      aim: "running",
      waitMs: timeouts.patienceMs,
      work: () => resumeNow(id, ask),
      beforeJoining: async () => {
        const record = await store.sandboxes.get(id);
        if (ask === undefined || record === undefined || !isResuming(record)) return;
        if (isOther(ask, record.resumption?.memory ?? true)) throw inFlight(id);
      },
    });
  }

  /** @param again its node has just fetched the snapshot that it had lost */
  async function resumeNow(id: string, ask: ResumeAsk | undefined, again = false): Promise<Done> {
    const record = await store.sandboxes.get(id);
    // Its callers have checked the owner.
    if (record === undefined) throw notFound(id);
    const hasEnded = record.state === "gone" || record.state === "killing";
    if (hasEnded) throw deps.core.history.missing({ id: record.projectId }, id, record);
    if (record.state === "running" || record.state === "snapshotting") return { record, by: undefined, memory: false };
    if (isResuming(record)) {
      if (ask !== undefined && isOther(ask, record.resumption?.memory ?? true)) throw inFlight(id);
      await store.operations.take(id, "running", ["starting"]);
      return start(record, undefined);
    }
    if (record.state !== "paused" || record.snapshot === undefined) {
      throw new AppError("conflict", `Sandbox "${id}" is changing state`);
    }
    if (ask === undefined) return { record, by: undefined, memory: false };
    const claimed = await claim(record, record.snapshot.id, ask);
    return start(claimed, ask).catch(async (reason: unknown) => {
      if (again || !(await isBack(claimed, ask, reason))) throw reason;
      return resumeNow(id, ask, true);
    });
  }

  /** Whether its node, which came back as an empty machine, has the snapshot again. @throws {AppError} unavailable: it is on its way */
  async function isBack(record: SandboxRecord, ask: ResumeAsk, reason: unknown): Promise<boolean> {
    if (!isError(reason, "snapshot_files_missing")) return false;
    try {
      return await deps.elsewhere.bringBack(await storedStart(record, ask));
    } catch (error) {
      if (isError(error, "unavailable")) throw error;
      deps.core.log.warn({ err: error, sandboxId: record.id }, "a node could not fetch a snapshot that it had lost");
      return false;
    }
  }

  async function claim(record: SandboxRecord, snapshotId: string, ask: ResumeAsk): Promise<SandboxRecord> {
    const { id } = record;
    const nodeId = await nodeOf(record, ask);
    const claimed = await store.move({
      id,
      to: "starting",
      when: { from: ["paused"], snapshotId, limit: ask.limit },
      set: {
        executionId: newExecutionId(),
        nodeId,
        resumption: { memory: ask.memory, seconds: ask.seconds },
        deadlineAt: now() + timeouts.resumeTimeoutMs + timeouts.patienceMs + DEADLINE_SLACK_MS,
        ...defined({ onTimeout: ask.onTimeout }),
      },
    });
    if (claimed !== undefined) return claimed;
    const current = await store.sandboxes.get(id);
    if (current?.state === "paused") throw await deps.core.refusals.start(current.projectId, current, ask.limit);
    // Another orchestrator was faster: this caller waits for it, and looks again.
    throw new UnderWay();
  }

  /** The node that starts it: its own, or one that has fetched its snapshot. */
  async function nodeOf(record: SandboxRecord, ask: ResumeAsk): Promise<string> {
    const { nodeId: home } = record;
    const refusal = deps.core.nodes.refused(home);
    if (refusal !== undefined) throw new AppError("unavailable", refusal);
    const status = deps.core.nodes.get(home)?.status;
    if (status === "ready" || status === "standby" || ask.here === true) return home;
    return deps.elsewhere.nodeFor(await storedStart(record, ask));
  }

  async function storedStart(record: SandboxRecord, ask: ResumeAsk) {
    const { nodeId: home, projectId, cpuCount, memoryMB, diskSizeMB, volumeMounts, snapshot } = record;
    const project = await store.projects.find(projectId);
    return {
      snapshotId: snapshot?.id ?? "",
      home,
      memory: ask.memory && snapshot?.memory === true,
      resources: { cpuCount, memoryMB, diskSizeMB },
      network: allowsAnything(toPolicy({ ...record, proxyPassword: undefined })),
      region: project?.region,
      labels: project?.nodeLabels,
      hasVolumes: volumeMounts.length > 0,
    };
  }

  async function start(record: SandboxRecord, by: ResumeAsk | undefined): Promise<Done> {
    const { id, resumption, snapshot } = record;
    if (resumption === undefined || snapshot === undefined) {
      throw new AppError("internal", `sandbox ${id} is being resumed without a snapshot`);
    }
    underWay.set(id, resumption.memory && snapshot.memory);
    try {
      const asked = { ...resumption, snapshotId: snapshot.id, repeated: by === undefined };
      const running = await observed({ now, observe: (outcome) => deps.observe(outcome) }, async () => {
        const started = await ask(record, asked).catch((reason: unknown) => back(record, reason));
        return settle(record, resumption, started);
      });
      return { record: running, by, memory: resumption.memory && snapshot.memory };
    } finally {
      underWay.delete(id);
    }
  }

  /** The node has not started it: starting → paused, unless the node has not answered. Rejects with the reason. */
  async function back(record: SandboxRecord, reason: unknown): Promise<never> {
    const { id, executionId, projectId } = record;
    if (isError(reason, "disk_lost")) {
      const gone = await deps.ending.lost(record, reason.message);
      if (gone !== undefined) throw deps.core.history.missing({ id: projectId }, id, gone);
    }
    if (!isError(reason, "node_unreachable")) {
      await store.move({
        id,
        to: "paused",
        when: { executionId, from: ["starting"] },
        set: { resumption: null },
        failure: AppError.from(reason),
      });
    }
    throw reason;
  }

  function ask(
    record: SandboxRecord,
    { snapshotId, memory, seconds, repeated }: Resumption & { readonly snapshotId: string; readonly repeated: boolean },
  ): Promise<Started> {
    const { executionId, cpuCount, memoryMB } = record;
    const again = {
      record,
      executionId,
      origin: { is: "paused" as const, snapshotId, memory },
      endAt: () => now() + seconds * 1000,
      // The node has promised the disk of the paused sandbox already.
      promise: { cpuCount, memoryMB, diskSizeMB: 0 },
      repeated,
      what: "resume",
    };
    return startAgain(again, deps.core);
  }

  /** starting → running. Its snapshot is superseded only now, and only when its memory was restored. */
  async function settle(record: SandboxRecord, resumption: Resumption, started: Started): Promise<SandboxRecord> {
    const { id, executionId, nodeId, snapshot } = record;
    const kept = snapshot?.memory === true && started.restored === "disk";
    const endAt = now() + resumption.seconds * 1000;
    const running = await store.move(
      {
        id,
        to: "running",
        when: { executionId, from: ["starting"] },
        set: {
          address: started.address,
          envdVersion: started.envdVersion,
          startedAt: now(),
          endAt,
          resumption: null,
          ...(kept ? {} : { snapshot: null }),
        },
      },
      { type: "resumed", data: { restored: started.restored } },
    );
    if (running === undefined) return settled(record);
    deps.core.routes.add(running);
    deps.core.deadlines.soon(endAt);
    if (!kept && snapshot !== undefined) deps.core.snapshots.removeSoon(nodeId, snapshot.id);
    const { restored, times = {} } = started;
    deps.onParts(Object.entries(times).map(([part, ms]) => [`node.${part}`, ms]));
    deps.core.log.info({ sandboxId: id, executionId, restored, times }, "sandbox resumed");
    return running;
  }

  /** Another transition moved it: it was finished elsewhere, or killed, which overtakes a start. */
  async function settled({ id, executionId, nodeId }: SandboxRecord): Promise<SandboxRecord> {
    const current = await store.sandboxes.get(id);
    if (current?.executionId === executionId && current.state === "running") return current;
    if (current === undefined || current.state === "gone" || current.state === "killing") {
      deps.core.background.run("end killed start", () => deps.ending.end(nodeId, executionId));
      throw new AppError("conflict", `Sandbox "${id}" was killed while it was starting`);
    }
    throw new AppError("conflict", `Sandbox "${id}" is changing state`);
  }

  return {
    async resume(id, ask) {
      const memory = deps.core.transitions.current(id) === "running" ? underWay.get(id) : undefined;
      if (memory !== undefined && isOther(ask, memory)) throw inFlight(id);
      const done = await begin(id, ask);
      if (done.by !== ask && done.by !== undefined && isOther(ask, done.memory)) throw inFlight(id);
      return { record: done.record, own: done.by === ask };
    },
    async recover({ id }) {
      await begin(id, undefined);
    },
  };
}

/** A start without memory differs from one with memory: no caller gets the other kind silently. */
function isOther(ask: Resumption, memory: boolean): boolean {
  return !ask.memory && memory;
}

function inFlight(id: string): AppError {
  return new AppError("sandbox_start_in_flight", `Sandbox "${id}" is already being resumed with its memory`);
}

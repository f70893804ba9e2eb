/** Lifetime of a running sandbox: connect and refresh extend it, the timeout route sets it. */

import { setTimeout as sleep } from "node:timers/promises";
import { AppError, isError } from "../../../shared/http/errors.ts";
import type { Project } from "../../store/projects/record.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Core } from "../core.ts";
import { isResuming, shown } from "../record-state.ts";

/**
 * `set` and `refresh` wait for a snapshot, a fork, a rewind or a resume under way: most end within seconds, and the sandbox runs. One that
 * takes longer than `LONGEST_WAIT_MS` is a conflict.
 */
export interface Lifetime {
  /** Extends a running sandbox to at least `seconds` from now. */
  connect(project: Project, id: string, seconds: number): Promise<SandboxRecord>;
  /** Sets the end to `seconds` from now; 0 expires the sandbox at once. */
  set(project: Project, id: string, seconds: number): Promise<void>;
  refresh(project: Project, id: string, seconds: number | undefined): Promise<void>;
}

/** Shorter refreshes are raised to this, as in the hosted service. */
const LEAST_REFRESH_S = 15;
/** Transitions, one after the other, that a caller waits for. */
const ROUNDS = 4;
/** Of all of them together: clients wait 30 s for an answer, and a conflict tells them more than none. */
const LONGEST_WAIT_MS = 20_000;
/** Between two looks at a transition that nobody works on at the moment. */
const AGAIN_MS = 100;
/** States that end with the sandbox running. One that runs by now has just ended what it was busy with. */
const PASSING: ReadonlySet<SandboxRecord["state"]> = new Set(["snapshotting", "rewinding", "running"]);

export function createLifetime(core: Core): Lifetime {
  const { store, now } = core;

  async function owned(project: Project, id: string): Promise<SandboxRecord> {
    const record = await store.sandboxes.get(id);
    if (record === undefined || record.projectId !== project.id || record.state === "gone") {
      throw core.history.missing(project, id, record);
    }
    return record;
  }

  /** The latest end that a sandbox may have. */
  function longest(project: Project, record: SandboxRecord): number {
    return record.startedAt + core.limits.hours(project) * 3_600_000;
  }

  function changed(record: SandboxRecord): void {
    core.deadlines.soon(record.endAt);
    // The node acts on its own copy only while the orchestrator is away; its next report repairs a missed change.
    core.background.run("send end to node", async () => {
      const { executionId, nodeId, endAt } = record;
      await core.nodes
        .agent(nodeId)
        .updateExecution({ params: { executionId }, body: { endAt } }, { timeoutMs: 5_000 });
    });
  }

  /** Why a sandbox is not running although its caller expects it. */
  async function refusal(project: Project, id: string): Promise<AppError> {
    const record = await store.sandboxes.get(id);
    if (record === undefined || record.projectId !== project.id) return core.history.missing(project, id, record);
    if (record.state === "starting") {
      const what = isResuming(record) ? "being resumed" : "still starting";
      return new AppError("conflict", `Sandbox "${id}" is ${what}`);
    }
    if (shown(record) === "running") return new AppError("conflict", `Sandbox "${id}" is changing state`);
    if (shown(record) === "paused") {
      const way = "connect to it, which takes the timeout that it is to have";
      return new AppError(
        "sandbox_not_found",
        `Sandbox "${id}" is paused, and has no timeout until it is resumed: ${way}`,
      );
    }
    return core.history.missing(project, id, record);
  }

  async function change(
    project: Project,
    id: string,
    change: { readonly seconds: number; readonly extendOnly: boolean },
  ): Promise<SandboxRecord> {
    const before = await owned(project, id);
    const limit = longest(project, before);
    if (change.seconds > 0 && limit <= now()) throw new AppError("bad_request", "Max instance length exceeded");
    const at = Math.min(now() + change.seconds * 1000, Math.max(limit, now()));
    // Nothing to write: an end that other code compares for equality must not change.
    if (change.extendOnly && before.state === "running" && before.endAt >= at) return before;
    const record = await store.setEnd(id, { at, extendOnly: change.extendOnly });
    if (record === undefined) throw await refusal(project, id);
    changed(record);
    return record;
  }

  /** As `change`, once what is done to the sandbox at the moment has ended. */
  async function changeAtRest(
    project: Project,
    id: string,
    asked: { readonly seconds: number; readonly extendOnly: boolean },
  ): Promise<void> {
    const until = now() + Math.min(core.timeouts.patienceMs, LONGEST_WAIT_MS);
    for (let round = 1; ; round++) {
      try {
        await change(project, id, asked);
        return;
      } catch (reason) {
        const leftMs = until - now();
        if (round === ROUNDS || leftMs <= 0 || !isError(reason, "conflict") || !(await isPassing(id))) throw reason;
        if (!(await core.transitions.settled(id, leftMs))) await sleep(AGAIN_MS);
      }
    }
  }

  async function isPassing(id: string): Promise<boolean> {
    const record = await store.sandboxes.get(id);
    return record !== undefined && (PASSING.has(record.state) || isResuming(record));
  }

  return {
    connect: (project, id, seconds) => change(project, id, { seconds, extendOnly: true }),
    async set(project, id, seconds) {
      await changeAtRest(project, id, { seconds, extendOnly: false });
    },
    async refresh(project, id, seconds) {
      const raised = Math.max(LEAST_REFRESH_S, seconds ?? 0);
      await changeAtRest(project, id, { seconds: raised, extendOnly: true });
    },
  };
}

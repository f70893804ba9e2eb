/**
 * running or paused → rewinding → running: the sandbox gets the memory and disk of a snapshot of itself, on the node where it is,
 * as a new execution. It keeps its id, tokens, policy, volumes and, while it runs, its end. The row names the new execution
 * before the node is asked; the former one stands still on its node until the new one runs, and goes on when that fails. A
 * paused sandbox keeps its own snapshot until then. Without an answer of the node, or where its answer cannot be recorded, the
 * sandbox stays `rewinding`, and the next caller or housekeeping repeats the request for the same execution.
 */

import type { Started } from "../../../shared/agent-api/routes.ts";
import { defined } from "../../../shared/defined.ts";
import { AppError, isError } from "../../../shared/http/errors.ts";
import { newExecutionId } from "../../../shared/ids.ts";
import { allowsAnything } from "../../../shared/policy/egress-policy.ts";
import { toPolicy } from "../../network-policy/policy.ts";
import type { Build } from "../../store/builds/record.ts";
import { UnderWay } from "../../store/operations/record.ts";
import type { StartLimits } from "../../store/projects/limits.ts";
import type { Project } from "../../store/projects/record.ts";
import type { Rewind, SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Core } from "../core.ts";
import type { Ending } from "../ending/kill.ts";
import { type ChangeOutcome, observed } from "../observed.ts";
import type { Elsewhere } from "../start/elsewhere.ts";
import { startAgain } from "../start/start-again.ts";
import { isOwnState } from "./own-state.ts";

interface RewindAsk {
  /** The snapshot, as it is named in the request and as a build. */
  readonly name: string;
  readonly snapshot: Build;
  /** false: its disk alone. */
  readonly memory: boolean;
  /** Seconds until its end, from when it runs. Undefined: a running sandbox keeps its end, a paused one gets `pausedSeconds`. */
  readonly seconds: number | undefined;
  readonly pausedSeconds: number;
}

export interface Rewinding {
  /** @throws {AppError} 404; 409 in transition, or for a snapshot of another sandbox; or the node's reason: nothing has changed then */
  rewind(project: Project, id: string, ask: RewindAsk): Promise<SandboxRecord>;
  /** Finishes a rewind that a crash interrupted. */
  recover(record: SandboxRecord): Promise<void>;
}

export interface RewindingDeps {
  readonly core: Core;
  readonly ending: Pick<Ending, "end">;
  readonly elsewhere: Pick<Elsewhere, "bringTo">;
  observe(outcome: ChangeOutcome): void;
}

const DEADLINE_SLACK_MS = 30_000;
const NOTHING = { cpuCount: 0, memoryMB: 0, diskSizeMB: 0 };

export function createRewinding(deps: RewindingDeps): Rewinding {
  const { core } = deps;
  const { store, routes, timeouts, now } = core;

  /** @param key what was asked for: callers who ask for the same share one rewind */
  function perform<T>(id: string, key: string, work: () => Promise<T>): Promise<T> {
    const waitMs = timeouts.resumeTimeoutMs + timeouts.patienceMs;
    return core.transitions.perform({ sandboxId: id, aim: "rewinding", key, waitMs, work });
  }

  async function rewindNow(project: Project, id: string, ask: RewindAsk): Promise<SandboxRecord> {
    for (;;) {
      const record = await owned(project, id);
      switch (record.state) {
        case "running":
        case "paused":
          return complete(await claim(project, record, ask), false);
        case "rewinding": {
          // An orchestrator that crashed began it, or nobody knows its outcome.
          await store.operations.take(id, "rewinding", ["rewinding"]);
          const done = await complete(record, true);
          const { snapshotId, memory } = record.rewind ?? {};
          if (snapshotId === ask.snapshot.id && memory === ask.memory) return done;
          break;
        }
        default:
          throw new AppError("conflict", `Sandbox "${id}" is changing state`);
      }
    }
  }

  async function owned(project: Project, id: string): Promise<SandboxRecord> {
    const record = await store.sandboxes.get(id);
    const isThere = record?.projectId === project.id && record.state !== "gone" && record.state !== "killing";
    if (!isThere) throw core.history.missing(project, id, record);
    return record;
  }

  async function claim(project: Project, record: SandboxRecord, ask: RewindAsk): Promise<SandboxRecord> {
    const { id, nodeId, executionId } = record;
    const from = record.state === "paused" ? "paused" : "running";
    refuseNode(nodeId);
    await bring(project, record, ask);
    const limit = limitOf(core.limits.starts(project), from);
    const claimed = await store.move({
      id,
      to: "rewinding",
      when: {
        executionId,
        from: [from],
        limit,
        ...(from === "paused" ? defined({ snapshotId: record.snapshot?.id }) : {}),
      },
      set: {
        rewind: {
          executionId: newExecutionId(),
          snapshotId: ask.snapshot.id,
          memory: ask.memory,
          from,
          seconds: ask.seconds ?? (from === "paused" ? ask.pausedSeconds : undefined),
        },
        deadlineAt: now() + timeouts.resumeTimeoutMs + timeouts.patienceMs + DEADLINE_SLACK_MS,
      },
    });
    if (claimed !== undefined) return claimed;
    const current = await store.sandboxes.get(id);
    if (current?.state === from && current.executionId === executionId)
      throw await core.refusals.start(project.id, current, limit);
    // Another orchestrator was faster: this caller waits for it, and looks again.
    throw new UnderWay();
  }

  /** Its state is on this node only, so no other node can rewind it. */
  function refuseNode(nodeId: string): void {
    const refusal = core.nodes.refused(nodeId);
    if (refusal !== undefined) throw new AppError("unavailable", refusal);
    const status = core.nodes.get(nodeId)?.status;
    if (status === "ready" || status === "standby" || status === "draining") return;
    throw new AppError(
      "no_compatible_node",
      `node ${nodeId}, on which the sandbox is, does not answer: the sandbox can be rewound when the node is back`,
    );
  }

  async function bring(
    { region, nodeLabels }: Project,
    record: SandboxRecord,
    { snapshot, memory }: RewindAsk,
  ): Promise<void> {
    const { cpuCount, memoryMB, diskSizeMB, volumeMounts } = record;
    await deps.elsewhere.bringTo(record.nodeId, {
      snapshotId: snapshot.id,
      home: snapshot.nodeId ?? record.nodeId,
      memory: memory && snapshot.memory,
      resources: { cpuCount, memoryMB, diskSizeMB },
      network: allowsAnything(toPolicy({ ...record, proxyPassword: undefined })),
      region,
      labels: nodeLabels,
      hasVolumes: volumeMounts.length > 0,
    });
  }

  /** rewinding → running as the new execution, or back to what it was, with the node's reason. */
  async function complete(record: SandboxRecord, repeated: boolean): Promise<SandboxRecord> {
    const { id, executionId, rewind } = record;
    if (rewind === undefined)
      throw new AppError("internal", `sandbox ${id} is being rewound, but its record has no rewind`);
    return observed({ now, observe: (outcome) => deps.observe(outcome) }, async () => {
      if (rewind.from === "running") await routes.suspend(id, executionId);
      const started = await ask(record, rewind, repeated).catch(async (reason: unknown) => {
        const failure = AppError.from(reason);
        if (!isError(failure, "node_unreachable")) await back(record, rewind, failure);
        throw reason;
      });
      return settle(record, rewind, started);
    });
  }

  function ask(record: SandboxRecord, rewind: Rewind, repeated: boolean): Promise<Started> {
    const { snapshotId, memory, from } = rewind;
    const { cpuCount, memoryMB, diskSizeMB } = record;
    const replaces = from === "running" ? record.executionId : undefined;
    const again = {
      record,
      executionId: rewind.executionId,
      origin: { is: "rewind" as const, snapshotId, memory, ...defined({ replaces }) },
      endAt: () => endOf(record, rewind),
      promise: from === "running" ? NOTHING : { cpuCount, memoryMB, diskSizeMB },
      repeated,
      what: "rewind",
    };
    return startAgain(again, core).catch((reason: unknown) => {
      // Every agent of this version understands the request.
      if (!isError(reason, "bad_request") || !reason.message.includes("origin")) throw reason;
      throw new AppError(
        "no_compatible_node",
        `the agent of node ${record.nodeId} is of an earlier version, which cannot rewind: its operator has to upgrade it`,
        { cause: reason },
      );
    });
  }

  function endOf({ endAt }: SandboxRecord, { seconds }: Rewind): number {
    return seconds === undefined ? endAt : now() + seconds * 1000;
  }

  async function settle(record: SandboxRecord, rewind: Rewind, started: Started): Promise<SandboxRecord> {
    const { id, nodeId, snapshot } = record;
    const { executionId, snapshotId, from } = rewind;
    const { address, envdVersion, restored } = started;
    const running = await store.move(
      {
        id,
        to: "running",
        when: { executionId: record.executionId, from: ["rewinding"] },
        set: {
          executionId,
          address,
          envdVersion,
          startedAt: now(),
          endAt: endOf(record, rewind),
          rewind: null,
          snapshot: null,
        },
      },
      { type: "rewound", data: { snapshot_id: snapshotId, restored, from } },
    );
    if (running === undefined) return settled(record, rewind);
    await routes.remove(id, record.executionId, "paused");
    routes.add(running);
    core.deadlines.soon(running.endAt);
    // What it was paused with, or what an earlier start without memory has kept.
    if (snapshot !== undefined) core.snapshots.removeSoon(nodeId, snapshot.id);
    core.log.info({ sandboxId: id, executionId, snapshotId, restored, from }, "sandbox rewound");
    return running;
  }

  /** Another transition moved it: it was finished elsewhere, or killed, which overtakes a rewind. */
  async function settled({ id, nodeId }: SandboxRecord, { executionId }: Rewind): Promise<SandboxRecord> {
    const current = await store.sandboxes.get(id);
    if (current?.executionId === executionId && current.state !== "gone" && current.state !== "killing") return current;
    if (current === undefined || current.state === "gone" || current.state === "killing") {
      core.background.run("end killed rewind", () => deps.ending.end(nodeId, executionId));
      throw new AppError("conflict", `Sandbox "${id}" was killed while it was being rewound`);
    }
    throw new AppError("conflict", `Sandbox "${id}" is changing state`);
  }

  async function back({ id, executionId }: SandboxRecord, { from }: Rewind, failure: AppError): Promise<void> {
    const before = await store.move({
      id,
      to: from,
      when: { executionId, from: ["rewinding"] },
      set: { rewind: null },
      failure,
    });
    if (before?.state !== "running") return;
    routes.add(before);
    core.deadlines.soon(before.endAt);
  }

  return {
    async rewind(project, id, ask) {
      const record = await owned(project, id);
      if (!(await isOwnState(store, record, ask.snapshot))) throw notOwn(id, ask.name);
      const key = [ask.snapshot.id, ask.memory, ask.seconds].join();
      return perform(id, key, () => rewindNow(project, id, ask));
    },
    async recover({ id }) {
      await perform(id, "recovery", async () => {
        const record = await store.sandboxes.get(id);
        if (record?.state !== "rewinding") return;
        await store.operations.take(id, "rewinding", ["rewinding"]);
        await complete(record, true);
      });
    },
  };
}

/** A running sandbox counts already; only how many starts a minute has is left to be held against a limit. */
function limitOf(limits: StartLimits, from: "running" | "paused"): StartLimits {
  if (from === "paused") return limits;
  return { sandboxes: Number.MAX_SAFE_INTEGER, ...defined({ startsPerMinute: limits.startsPerMinute }) };
}

function notOwn(id: string, name: string): AppError {
  return new AppError(
    "conflict",
    `snapshot '${name}' is not a state that sandbox "${id}" has had: name a snapshot of it or of the sandbox that it was forked or ` +
      "started from, taken before that, or start a new sandbox from this one",
  );
}

/**
 * Carries drains out. A running sandbox is paused with its memory and resumed on another node; requests for it wait meanwhile. A
 * paused one goes there as it is, or is in the blob store already. What has no place stays where it is, and runs on if it ran.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { AppError } from "../../../shared/http/errors.ts";
import { allowsAnything } from "../../../shared/policy/egress-policy.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Loop } from "../../../shared/program/loop.ts";
import type { Background } from "../../base/background.ts";
import type { Lifecycle } from "../../lifecycle/wire.ts";
import { toPolicy } from "../../network-policy/policy.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { Rounds } from "../../store/membership/leases.ts";
import type { DrainMoveRecord, DrainRecord } from "../../store/nodes/drain-record.ts";
import type { DrainOutcome } from "../../store/nodes/drains.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Store } from "../../store/store.ts";
import { type DrainStep, drainState, planDrain } from "./drain-plan.ts";
import { asFound, reasonOf, stays } from "./outcomes.ts";
import { sidesOf } from "./progress.ts";
import { createRestart } from "./restart.ts";

export interface DrainsDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly lifecycle: Pick<Lifecycle, "pausing" | "resuming" | "ending" | "elsewhere" | "snapshots">;
  readonly rounds: Rounds;
  readonly background: Background;
  readonly now: () => number;
  readonly log: Log;
  /** Called with what became of each sandbox. */
  readonly onSettled?: (state: DrainOutcome["state"]) => void;
  /** For tests. */
  readonly everyMs?: number;
}

const EVERY_MS = 2_000;
/** How long a snapshot may take to another node before the sandbox runs on where it was. */
const LONGEST_MS = 600_000;
const LOOK_MS = 500;

export function startDrains(deps: DrainsDeps): Pick<Loop, "stop" | "wake"> {
  const stopping = new AbortController();
  const { store, nodes, lifecycle, background, now, log } = deps;
  const { elsewhere } = lifecycle;
  const runAgain = createRestart(deps);
  /** Sandboxes that this process works on, by node. */
  const working = new Map<string, Set<string>>();
  /** The drains that this process has seen done: when each began, by node. */
  const done = new Map<string, number>();

  const placeFor = async (record: SandboxRecord) => {
    const { nodeId: home, projectId, cpuCount, memoryMB, diskSizeMB, volumeMounts } = record;
    const project = await store.projects.find(projectId);
    return {
      home,
      resources: { cpuCount, memoryMB, diskSizeMB },
      network: allowsAnything(toPolicy({ ...record, proxyPassword: undefined })),
      region: project?.region,
      labels: project?.nodeLabels,
      hasVolumes: volumeMounts.length > 0,
    };
  };

  /** The node that has the snapshot now. @throws {AppError} why no other node can have it */
  async function away(record: SandboxRecord, snapshot: NonNullable<SandboxRecord["snapshot"]>): Promise<string> {
    const start = { ...(await placeFor(record)), snapshotId: snapshot.id, memory: snapshot.memory };
    const until = now() + LONGEST_MS;
    for (;;) {
      const outcome = await elsewhere.away(start);
      if ("nodeId" in outcome) return outcome.nodeId;
      if (now() >= until || stopping.signal.aborted) throw outcome.later;
      await sleep(LOOK_MS);
    }
  }

  /** Resolves with the reason of a failure: the sandbox runs on then, or the node has not said whether it does. `conflict`: its owner was faster. */
  async function pause(record: SandboxRecord): Promise<AppError | undefined> {
    if (record.state === "pausing") return failureOf(lifecycle.pausing.recover(record));
    const project = await store.projects.find(record.projectId);
    if (project === undefined) return new AppError("conflict", "its project is being deleted");
    const refused = elsewhere.refusal({ ...(await placeFor(record)), memory: true });
    return refused ?? failureOf(lifecycle.pausing.pause(project, record.id, true));
  }

  /** Pauses the sandbox, or waits for its pause. An outcome: it runs on. `pausing`: the node has not said how the pause ends, and requests wait. */
  async function standStill(record: SandboxRecord): Promise<DrainOutcome | "pausing" | undefined> {
    const { id, state } = record;
    if (state !== "running" && state !== "pausing") return undefined;
    const refused = await pause(record);
    const after = (await store.sandboxes.get(id))?.state;
    // The pause is this drain's, perhaps at another orchestrator.
    const isOwn = state === "pausing" || refused?.code !== "conflict";
    if (after === "pausing" && isOwn) {
      if (refused !== undefined)
        await store.drains.explain({ nodeId: record.nodeId, sandboxId: id }, reasonOf(refused));
      return "pausing";
    }
    return refused !== undefined && (!isOwn || after === "running") ? stays(refused) : undefined;
  }

  /** A running sandbox. Undefined: it does not run again yet, and the next round goes on. */
  async function move(
    record: SandboxRecord,
    { endAt, begun }: Pick<DrainMoveRecord, "endAt"> & { readonly begun: number },
  ): Promise<DrainOutcome | undefined> {
    const { id, nodeId: home } = record;
    const early = await standStill(record);
    if (early === "pausing") return undefined;
    if (early !== undefined) return early;
    const paused = await store.sandboxes.get(id);
    if (paused?.snapshot === undefined || (paused.state !== "paused" && paused.state !== "starting"))
      return asFound(paused, home);
    const pausedAt = now();
    const why = await away(paused, paused.snapshot).then(
      () => undefined,
      (error: unknown) => error,
    );
    // The next orchestrator goes on from here.
    if (stopping.signal.aborted) return undefined;
    if (why !== undefined)
      log.warn({ err: why, sandboxId: id, home }, "a drain could not take a sandbox to another node");
    const thereAt = now();
    const after = await runAgain(paused, { endAt, home, begun, why });
    if (after === undefined) return undefined;
    const parts = { pauseMs: pausedAt - begun, awayMs: thereAt - pausedAt, startMs: now() - thereAt };
    log.info({ sandboxId: id, home, ...parts }, "the parts of the time that a sandbox stood still in a drain");
    // It is superseded, and would be held on its node for hours. Where it does not run on the other node, it may be needed.
    if (after.state === "moved" && after.reason === undefined) lifecycle.snapshots.removeSoon(home, paused.snapshot.id);
    return { ...after, stallMs: now() - begun };
  }

  /** A paused sandbox, as it is. */
  async function carry(record: SandboxRecord): Promise<DrainOutcome | undefined> {
    const { id, nodeId: from, snapshot } = record;
    if (snapshot === undefined || record.state !== "paused") return asFound(record, from);
    if (record.volumeMounts.length === 0 && (await store.blobRefs.of(snapshot.id)) !== undefined)
      return { state: "stored" };
    let to: string;
    try {
      to = await away(record, snapshot);
    } catch (error) {
      return stopping.signal.aborted ? undefined : stays(error);
    }
    if (!(await store.drains.rehome({ id, snapshotId: snapshot.id, from, to })))
      return asFound(await store.sandboxes.get(id), from);
    lifecycle.snapshots.removeSoon(from, snapshot.id);
    return { state: "moved", toNode: to };
  }

  /** False: it is between two nodes, and the next round goes on. */
  async function carryOut(
    nodeId: string,
    { sandboxId, do: what }: DrainStep,
    known: DrainMoveRecord | undefined,
  ): Promise<boolean> {
    const record = await store.sandboxes.get(sandboxId);
    const key = { nodeId, sandboxId };
    if (record === undefined || record.nodeId !== nodeId || record.state === "gone") {
      return known === undefined || left(record, key, known);
    }
    // Its owner has paused it since it was chosen: it is carried as it is.
    if (what === "move" && record.state !== "running") return true;
    return carryOutHere(record, what, known);
  }

  /** Of a sandbox that is on its node, as `carryOut`. */
  async function carryOutHere(
    record: SandboxRecord,
    what: DrainStep["do"],
    known: DrainMoveRecord | undefined,
  ): Promise<boolean> {
    const key = { nodeId: record.nodeId, sandboxId: record.id };
    const was = what === "goOn" ? (known?.was ?? "running") : what === "carry" ? "paused" : "running";
    const endAt = what === "goOn" && known !== undefined ? known.endAt : record.endAt;
    // A sandbox that did not start again at once stands still since the first try.
    const begun = known?.state === "moving" ? known.at : now();
    if (what !== "goOn") await store.drains.moving({ ...key, was, endAt, at: begun });
    const outcome = await (what === "kill"
      ? kill(record)
      : was === "paused"
        ? carry(record)
        : move(record, { endAt, begun }));
    if (outcome === undefined) return false;
    await store.drains.settle(key, outcome);
    deps.onSettled?.(outcome.state);
    log.info({ ...key, ...outcome }, "a drain has come to a sandbox");
    return true;
  }

  /** A sandbox that is not on its node any more. False: as `carryOut`. */
  async function left(
    record: SandboxRecord | undefined,
    key: Pick<DrainMoveRecord, "nodeId" | "sandboxId">,
    known: DrainMoveRecord,
  ): Promise<boolean> {
    // Its start there has failed, or is under way at another orchestrator: requests wait until it runs.
    const found =
      record !== undefined && isBetween(record, known)
        ? await runAgain(record, { endAt: known.endAt, home: key.nodeId, begun: known.at })
        : asFound(record, key.nodeId);
    if (found === undefined) return false;
    await store.drains.settle(key, { ...found, stallMs: stallOf(known) });
    if (found.state !== known.state) deps.onSettled?.(found.state);
    return true;
  }

  /** Of one that somebody else has started again, or another orchestrator. */
  function stallOf({ state, was, at }: DrainMoveRecord): number | undefined {
    return state === "moving" && was === "running" ? now() - at : undefined;
  }

  async function kill({ id, nodeId }: SandboxRecord): Promise<DrainOutcome> {
    try {
      await lifecycle.ending.kill(id, "admin");
      return { state: "killed", reason: "it still ran at the deadline" };
    } catch (error) {
      const reason = reasonOf(error);
      log.warn({ err: error, sandboxId: id, nodeId }, "a drain could not end a sandbox yet");
      return { state: "stays", reason };
    }
  }

  function begin(nodeId: string, step: DrainStep, known: DrainMoveRecord | undefined): void {
    const own = working.get(nodeId) ?? new Set();
    working.set(nodeId, own.add(step.sandboxId));
    background.run("drain a node", async () => {
      let settled = false;
      try {
        settled = await carryOut(nodeId, step, known);
      } finally {
        own.delete(step.sandboxId);
        if (own.size === 0 && working.get(nodeId) === own) working.delete(nodeId);
        // What has failed at once is not tried again at once.
        if (settled && !stopping.signal.aborted) drains.wake();
      }
    });
  }

  /** The request for the drain came to another orchestrator; or the operator takes the node back at this moment, and the drain has ended. */
  async function follow(nodeId: string): Promise<void> {
    const drain = await store.drains.get(nodeId);
    if (drain !== undefined && drain.endedAt === undefined) await nodes.setWanted(nodeId, "draining", "while drained");
  }

  /** Nothing is left of the node's sandboxes that another node could take. */
  async function noteDone({ nodeId, begunAt }: DrainRecord): Promise<void> {
    if (done.get(nodeId) === begunAt) return;
    await store.nodeEvents.note([{ nodeId, kind: "drained", at: now() }]);
    done.set(nodeId, begunAt);
  }

  async function round(signal: AbortSignal): Promise<void> {
    for (const drain of await store.drains.unfinished()) {
      if (signal.aborted) return;
      const { nodeId } = drain;
      const status = nodes.get(nodeId)?.status;
      if (drain.endedAt === undefined && (status === "ready" || status === "standby")) await follow(nodeId);
      const { here, moves } = await sidesOf(nodeId, store);
      const steps = planDrain({ drain, here, moves, working: working.get(nodeId) ?? new Set(), now: now() });
      for (const step of steps)
        begin(
          nodeId,
          step,
          moves.find(({ sandboxId }) => sandboxId === step.sandboxId),
        );
      if (drainState({ drain, here, moves, now: now() }) === "done") await noteDone(drain);
    }
  }

  const drains = deps.rounds({ name: "drains", everyMs: deps.everyMs ?? EVERY_MS, log }, round);
  return {
    wake: () => drains.wake(),
    async stop() {
      stopping.abort();
      await drains.stop();
    },
  };
}

/** A drain has taken it off its node, and it does not run on the other one yet. */
function isBetween({ state }: SandboxRecord, known: DrainMoveRecord): boolean {
  return known.state === "moving" && known.was === "running" && (state === "paused" || state === "starting");
}

/** Undefined: it succeeded. */
async function failureOf(work: Promise<unknown>): Promise<AppError | undefined> {
  return work.then(
    () => undefined,
    (error: unknown) => AppError.from(error),
  );
}

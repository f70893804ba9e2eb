/** The search for a node that starts a new sandbox: attempts, refusals, and the image that a node may have to fetch first. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Started, StartRequest } from "../../../shared/agent-api/routes.ts";
import { AppError, isError } from "../../../shared/http/errors.ts";
import { allowsAnything } from "../../../shared/policy/egress-policy.ts";
import { withDeadline, within } from "../../../shared/program/deadline.ts";
import { noTiming } from "../../../shared/program/tracing/timing.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { Demand } from "../../nodes/placement/candidate.ts";
import { type Choice, choose } from "../../nodes/placement/choose.ts";
import { busyWaitMs, verdictOf } from "../../nodes/retry.ts";
import type { Turn } from "../../nodes/start-turns.ts";
import type { NewSandbox } from "../../store/sandboxes/record.ts";
import type { LaunchDeps, LaunchRequest } from "./launch-request.ts";

/** Failed attempts before the caller gets the failure. */
const MAX_ATTEMPTS = 3;
/** Longest wait for a turn on one node before other nodes are looked at again. */
const LOOK_AROUND_MS = 2_000;
/** While a search waits for turns, the record learns this often that it goes on. */
const TELLS_EVERY_MS = 10_000;
const MIB = 1024 * 1024;
/** A sandbox with a longer record is adopted without its metadata and options: the request of a start has a limit. */
const MAX_RECORD_CHARACTERS = 262_144;

type Placed = ReturnType<Nodes["placing"]>;

/** Is told of a search's deadline while it moves along. False: the sandbox is not starting any more. */
type Follow = (deadline: number) => Promise<boolean>;

const nobody: Follow = () => Promise.resolve(true);
const WAITS = "waits" as const;

/**
 * One search for a node that starts the sandbox: attempts, refusals, and the time left. The time of a placement counts from the turn on:
 * while it waits for one, the search's deadline moves along, as long as its request may wait.
 */
export class Search {
  readonly #request: LaunchRequest;
  readonly #deps: LaunchDeps;
  readonly #moved: Follow;
  #deadline: number;
  /** Until then the request's starts may wait for their turns. */
  readonly #waitsUntil: number;
  readonly #excluded = new Map<string, string>();
  /** Nodes to which this search has brought the image. */
  readonly #fetchedTo = new Set<string>();
  /** When this search began, by the clock of the process, as all waits for turns. */
  readonly #since = Date.now();
  /** It had to wait for a turn. */
  #waited = false;
  /** The node that had no turn for it a moment ago: another one is tried first. */
  #passedBy: string | undefined;
  #refusals = 0;
  #failure: AppError | undefined;
  /** The last attempt had less time than a start needs. */
  #cut = false;

  constructor(request: LaunchRequest, deps: LaunchDeps, moved = nobody) {
    this.#request = request;
    this.#deps = deps;
    this.#moved = moved;
    const { now, timeouts } = deps.core;
    this.#deadline = now() + timeouts.placementTimeoutMs;
    this.#waitsUntil = (request.since ?? now()) + timeouts.startQueueMs;
  }

  /** Until then the search goes on, unless it has to wait for a turn. */
  get deadline(): number {
    return this.#deadline;
  }

  /**
   * The next node to ask; waits while a node is expected back or has refused. The placement counts on that node at
   * once, so that parallel choices see it; `placed` reports the outcome.
   */
  async node(): Promise<{ readonly nodeId: string; readonly placed: Placed }> {
    for (;;) {
      if (this.#request.signal?.aborted === true) throw abandoned();
      const choice = this.#choice();
      if (choice.is === "node") {
        return { nodeId: choice.id, placed: this.#deps.core.nodes.placing(choice.id, this.#request.start.resources) };
      }
      if (this.#failure !== undefined) throw this.#failed(this.#failure);
      if (choice.is === "full") throw choice.of === "disk" ? noSpace(choice.reason) : capacity(choice.reason);
      if (choice.is === "none")
        throw new AppError("no_compatible_node", failed(`no compatible node: ${choice.reason}`));
      await this.#pause();
    }
  }

  /**
   * Undefined: the start failed on this node, or had no turn there, and another may succeed. Throws when no other node can.
   */
  async attempt(execution: { executionId: string; nodeId: string }, placed: Placed): Promise<Started | undefined> {
    const { nodeId, executionId } = execution;
    const { timing = noTiming } = this.#request;
    const release = await timing
      .measure("queue", () => this.#turn(nodeId))
      .catch((reason: unknown) => {
        placed("refused");
        throw reason;
      });
    if (release === undefined) {
      placed("refused");
      return undefined;
    }
    const asked = this.#deps.core.now();
    try {
      const started = await timing.measure("node", () => this.#ask(execution, release));
      placed("started");
      for (const [part, ms] of Object.entries(started.times ?? {})) timing.add(`node.${part}`, ms);
      return started;
    } catch (reason) {
      const first = AppError.from(reason);
      const error = await this.#fetched(first, nodeId);
      if (error === undefined) return this.attempt(execution, placed);
      if (error !== first && isError(error, "unavailable")) {
        placed("refused");
        throw error;
      }
      // A refusal is not a failure: the node may have room soon.
      if (verdictOf(error) === "busy") {
        placed("refused");
        this.#refusals++;
        // The node let it wait for a turn there.
        this.#hasWaited(asked);
        await this.#pause();
        return undefined;
      }
      // A full disk says nothing about the sandbox: another node may have room.
      placed(isError(error, "no_space") ? "refused" : { failed: error });
      this.#deps.core.log.warn(
        { err: error, nodeId, executionId, sandboxId: this.#request.sandbox.id },
        "could not start a sandbox on this node",
      );
      // The request itself is wrong (for one, less memory than the snapshot's takes): it is so on every node.
      if (isError(error, "conflict") || isError(error, "failed_precondition")) throw error;
      this.#failure = error;
      this.#excluded.set(nodeId, "failed to start it");
      if (this.#excluded.size >= MAX_ATTEMPTS) throw this.#failed(error);
      this.#deps.core.background.run("end failed start", () => this.#deps.ending.end(nodeId, executionId));
      return undefined;
    }
  }

  /** Asks the node, and gives the turn back. */
  async #ask(execution: { executionId: string; nodeId: string }, release: () => void): Promise<Started> {
    const { core } = this.#deps;
    const { start, sandbox } = this.#request;
    const { nodeId, executionId } = execution;
    try {
      const now = core.now();
      const left = this.#deadline - now;
      this.#cut = left < core.timeouts.startTimeoutMs;
      const record = this.#describe({ ...sandbox, ...execution, startedAt: now, endAt: now, deadlineAt: 0 });
      const body = { ...start, ...record, endAt: now + sandbox.timeoutSeconds * 1000 };
      const timeoutMs = Math.max(1, Math.min(core.timeouts.startTimeoutMs, left));
      return await core.nodes.agent(nodeId).startExecution({ params: { executionId }, body }, { timeoutMs });
    } finally {
      release();
    }
  }

  /**
   * Waits for a turn on the node. Undefined: it had none for a while and there are other nodes, or the node has changed meanwhile; the
   * search keeps its place. @throws {AppError} when its request has waited too long, its caller has left, its sandbox was killed or
   * too many wait
   */
  async #turn(nodeId: string): Promise<(() => void) | undefined> {
    const { core } = this.#deps;
    const { nodeId: bound, sandbox, signal: caller } = this.#request;
    const looksAround = bound === undefined && core.nodes.hasOthers(nodeId);
    const left = Math.max(0, this.#waitsUntil - core.now());
    const turn = await within(looksAround ? Math.min(left, LOOK_AROUND_MS) : left, (limit) => {
      const leaving = new AbortController();
      const signal = AbortSignal.any([limit, leaving.signal, ...(caller === undefined ? [] : [caller])]);
      const taking = core.turns
        .take(nodeId, { owner: sandbox.projectId, since: this.#since, signal })
        .catch((reason: unknown) => {
          if (caller?.aborted === true) throw abandoned();
          if (!limit.aborted) throw reason;
          return undefined;
        });
      return this.#waitFor(taking, leaving);
    });
    this.#waited ||= turn?.waited !== false;
    if (turn === undefined) {
      if (core.now() >= this.#waitsUntil) throw busy();
      this.#passedBy = nodeId;
      return undefined;
    }
    if (!turn.waited || core.nodes.get(nodeId)?.status === "ready") return turn.release;
    turn.release();
    return undefined;
  }

  /** The search keeps its place in the node's line while the record learns that it goes on; it leaves the line when that fails. */
  async #waitFor(taking: Promise<Turn | undefined>, leaving: AbortController): Promise<Turn | undefined> {
    try {
      for (let since = this.#deps.core.now(); ; ) {
        const turn = await withDeadline(taking, TELLS_EVERY_MS, () => WAITS);
        since = this.#hasWaited(since);
        await this.#tell(turn !== undefined && turn !== WAITS);
        if (turn !== WAITS) return turn;
      }
    } catch (reason) {
      leaving.abort(reason);
      void taking.then(
        (turn) => turn?.release(),
        () => undefined,
      );
      throw reason;
    }
  }

  /** Without the record no start begins, and a wait goes on: the database may be back before its turn. */
  async #tell(hasTurn: boolean): Promise<void> {
    const { core } = this.#deps;
    const { id } = this.#request.sandbox;
    const isStarting = await this.#moved(this.#deadline).catch((reason: unknown) => {
      if (hasTurn) throw reason;
      core.log.debug({ err: reason, sandboxId: id }, "could not record that a start waits for its turn");
      return true;
    });
    if (!isStarting) throw killedMeanwhile(id);
  }

  /** Undefined: the node lacked only the image of the template, and has fetched it now. */
  async #fetched(error: AppError, nodeId: string): Promise<AppError | undefined> {
    const { imageNodeId: home, start, timing = noTiming } = this.#request;
    if (!isError(error, "template_not_found") || home === undefined) return error;
    if (this.#fetchedTo.has(nodeId)) return error;
    this.#fetchedTo.add(nodeId);
    try {
      const bring = () => this.#deps.images.bring(nodeId, { ...start.build, home }, this.#deadline);
      await timing.measure("image", bring);
      return undefined;
    } catch (reason) {
      const failure = AppError.from(reason);
      // Docker has lost the image of the node that built it, and nothing else has it.
      return home === nodeId && failure.code === "no_compatible_node" ? error : failure;
    }
  }

  /** What the node keeps of the record, for a store that has lost it. A node of an earlier version does not know the field. */
  #describe(sandbox: NewSandbox): Pick<StartRequest, "record"> {
    if (this.#deps.core.nodes.get(sandbox.nodeId)?.facts.capabilities.records !== true) return {};
    const record = this.#deps.core.store.adopted.describe(sandbox);
    return record.length > MAX_RECORD_CHARACTERS ? {} : { record };
  }

  #choice(): Choice {
    const nodeId = this.#passedBy;
    this.#passedBy = undefined;
    const elsewhere = nodeId === undefined ? undefined : this.choice([[nodeId, "has no turn for it"]]);
    return elsewhere?.is === "node" ? elsewhere : this.choice();
  }

  choice(passedBy: readonly (readonly [nodeId: string, because: string])[] = []): Choice {
    const { nodeId, imageNodeId, least, region, labels = {}, start } = this.#request;
    const { cpuCount, memoryMB, diskSizeMB } = start.resources;
    const demand: Demand = {
      cpuCount,
      memoryBytes: memoryMB * MIB,
      diskBytes: diskSizeMB * MIB,
      memory: start.origin?.memory === true,
      network: allowsAnything(start.egress),
      labels,
      region,
      exclude: new Map([...this.#unfit(), ...this.#excluded, ...passedBy]),
      home:
        nodeId === undefined ? undefined : { nodeId, has: start.origin === undefined ? "the volumes" : "the snapshot" },
      build: {
        id: start.build.buildId,
        nodeId: imageNodeId,
        ...(imageNodeId === undefined ? {} : { holders: this.#deps.images.holders(start.build.buildId) }),
      },
      ...(least === undefined ? {} : { least: { cpuCount: least.cpuCount, memoryBytes: least.memoryMB * MIB } }),
    };
    return choose(this.#deps.core.nodes.candidates(), demand, this.#deps.placement, this.#deps.core.random);
  }

  /** Nodes that neither have the image nor can fetch it. */
  #unfit(): [id: string, because: string][] {
    const { imageNodeId: home, imageInStore = false, nodeId, start } = this.#request;
    if (home === undefined || nodeId !== undefined) return [];
    return this.#deps.images.refusals({ buildId: start.build.buildId, home }, imageInStore);
  }

  /** @returns now */
  #hasWaited(since: number): number {
    const now = this.#deps.core.now();
    this.#deadline += Math.max(0, Math.min(now, this.#waitsUntil) - since);
    return now;
  }

  async #pause(): Promise<void> {
    if (this.#deps.core.now() >= this.#deadline) {
      throw this.#refusals > 0 ? busy() : timedOut(this.#excluded.size);
    }
    await sleep(busyWaitMs(this.#deps.core.random));
  }

  #failed(error: AppError): AppError {
    const count = this.#excluded.size;
    if (error.cause instanceof Error && error.cause.name === "TimeoutError") {
      // An attempt that had only the rest of the time after refusals or a wait does not count.
      const refused = (this.#refusals > 0 || this.#waited) && count === 1 && this.#cut;
      return refused ? busy() : timedOut(count, error);
    }
    // The node's last report was older than the loss of the ability.
    if (error.code === "memory_snapshots_unavailable") return error;
    // No node has what it starts from, and none can fetch it.
    if (error.code === "no_compatible_node") return error;
    if (error.code === "no_space") return noSpace(error.message, error);
    const text = count === 1 ? error.message : `repeated create failures (${count}): ${error.message}`;
    return new AppError("sandbox_create_failed", failed(text), { cause: error });
  }
}

// The contract requires this prefix.
function failed(reason: string): string {
  return `Failed to place sandbox: ${reason}`;
}

function capacity(reason: string): AppError {
  return new AppError("cluster_at_capacity", failed(`cluster at capacity: ${reason}`));
}

function noSpace(reason: string, cause?: AppError): AppError {
  return new AppError("no_space", failed(reason), { cause });
}

function busy(): AppError {
  return capacity("every node is busy starting sandboxes");
}

export function killedMeanwhile(id: string): AppError {
  return new AppError("conflict", `Sandbox "${id}" was killed while it was starting`);
}

function abandoned(): AppError {
  return new AppError("unavailable", failed("its caller left while it waited for its start"));
}

function timedOut(attempts: number, cause?: AppError): AppError {
  return new AppError("placement_timeout", failed(`placement timed out after ${attempts} attempt(s)`), { cause });
}

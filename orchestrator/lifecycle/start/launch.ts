/** Starts a new sandbox: record first, then a node, then the move to running. A failure leaves nothing behind. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Started, StartRequest } from "../../../shared/agent-api/routes.ts";
import { defined } from "../../../shared/defined.ts";
import { AppError, type ErrorCode, isError } from "../../../shared/http/errors.ts";
import { newExecutionId } from "../../../shared/ids.ts";
import { allowsAnything } from "../../../shared/policy/egress-policy.ts";
import { cleanDetail, type End } from "../../../shared/states/end-reason.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { Demand, PlacementPolicy } from "../../nodes/placement/candidate.ts";
import { type Choice, choose } from "../../nodes/placement/choose.ts";
import { busyWaitMs, verdictOf } from "../../nodes/retry.ts";
import type { StartLimits } from "../../store/projects/limits.ts";
import type { NewSandbox, SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Core } from "../core.ts";
import type { Ending } from "../ending/kill.ts";
import type { Elsewhere } from "./elsewhere.ts";

/** The sandbox to start, without the fields that the launch decides. */
export interface LaunchRequest {
  readonly sandbox: Omit<NewSandbox, "executionId" | "nodeId" | "startedAt" | "endAt" | "deadlineAt">;
  /** The start request without the end, which is set when a node is asked. */
  readonly start: Omit<StartRequest, "endAt">;
  /** What the project may start. */
  readonly limit: StartLimits;
  /** The only region whose nodes may run it. */
  readonly region?: string | undefined;
  /** What the node must have, whatever it promises: the size that the caller named. */
  readonly least?: { readonly cpuCount: number; readonly memoryMB: number };
  /** The only node that has the snapshot or the volumes to start from. */
  readonly nodeId?: string;
  /** A node that is known to have the image. */
  readonly imageNodeId?: string;
}

export interface LaunchDeps {
  readonly core: Core;
  readonly placement: PlacementPolicy;
  readonly ending: Ending;
  readonly elsewhere: Elsewhere;
  /** Counts the outcome for the metrics. */
  observe(outcome: { readonly warm: boolean; readonly seconds: number } | { readonly failed: ErrorCode }): void;
}

/** Of one of several sandboxes that a request starts. */
export type StartOutcome = { readonly record: SandboxRecord } | { readonly error: AppError };

export type Launch = (request: LaunchRequest) => Promise<SandboxRecord>;

/** Failed attempts before the caller gets the failure. */
const MAX_ATTEMPTS = 3;
const MIB = 1024 * 1024;
/** A sandbox with a longer record is adopted without its metadata and options: the request of a start has a limit. */
const MAX_RECORD_CHARACTERS = 262_144;
/** Added to the longest placement before a start counts as abandoned by a crashed orchestrator. */
const DEADLINE_SLACK_MS = 30_000;

export function createLaunch(deps: LaunchDeps): Launch {
  return async (request) => {
    const begun = performance.now();
    try {
      const { record, warm } = await run(await placedElsewhere(request, deps), deps);
      deps.observe({ warm, seconds: (performance.now() - begun) / 1000 });
      return record;
    } catch (reason) {
      deps.observe({ failed: AppError.from(reason).code });
      throw reason;
    }
  };
}

/** A named snapshot may be started on another node than its own. */
async function placedElsewhere(request: LaunchRequest, { elsewhere }: LaunchDeps): Promise<LaunchRequest> {
  const { nodeId: home, start, sandbox, region } = request;
  const { origin, resources, egress, volumes = [] } = start;
  if (home === undefined || origin === undefined || origin.snapshotId !== sandbox.buildId) return request;
  const nodeId = await elsewhere.nodeFor({
    snapshotId: origin.snapshotId,
    home,
    memory: origin.memory,
    resources,
    network: allowsAnything(egress),
    region,
    hasVolumes: volumes.length > 0,
  });
  return { ...request, nodeId };
}

async function run(request: LaunchRequest, deps: LaunchDeps): Promise<{ record: SandboxRecord; warm: boolean }> {
  const { id } = request.sandbox;
  deps.core.store.admit();
  const search = new Search(request, deps);
  let execution: { executionId: string; nodeId: string } | undefined;
  try {
    for (;;) {
      const { nodeId, placed } = await search.node();
      execution = await claim(request, deps, execution, nodeId).catch((reason: unknown) => {
        placed("refused");
        throw reason;
      });
      const started = await search.attempt(execution, placed);
      if (started !== undefined) {
        const record = await settle(request, deps, execution, started);
        return { record, warm: started.warm };
      }
    }
  } catch (reason) {
    if (execution !== undefined) {
      const { executionId, nodeId } = execution;
      // The record first, so that the API shows nothing as running. A node that misses the request to end the
      // execution reports it, and reconciliation ends it then.
      await deps.core.store.move({
        id,
        to: "gone",
        when: { executionId, from: ["starting"] },
        set: { endedAt: deps.core.now(), end: failedStart(AppError.from(reason)) },
      });
      deps.core.background.run("end failed start", () => deps.ending.end(nodeId, executionId));
    }
    throw reason;
  }
}

/** The record of this attempt: inserted at the first attempt, moved to another execution at later ones. */
async function claim(
  { sandbox, limit }: LaunchRequest,
  deps: LaunchDeps,
  former: { executionId: string; nodeId: string } | undefined,
  nodeId: string,
): Promise<{ executionId: string; nodeId: string }> {
  if (former?.nodeId === nodeId) return former;
  const execution = { executionId: newExecutionId(), nodeId };
  if (former === undefined) {
    const now = deps.core.now();
    const record = {
      ...sandbox,
      ...execution,
      startedAt: now,
      endAt: now + sandbox.timeoutSeconds * 1000,
      deadlineAt: now + deps.core.timeouts.placementTimeoutMs + DEADLINE_SLACK_MS,
    };
    if (await deps.core.store.sandboxes.add(record, limit)) return execution;
    throw await deps.core.refusals.start(sandbox.projectId, sandbox, limit);
  }
  if (await deps.core.store.sandboxes.restart(sandbox.id, former.executionId, execution)) return execution;
  throw killedMeanwhile(sandbox.id);
}

/** starting → running. The timeout begins now, so that a slow start does not shorten it. */
async function settle(
  { sandbox }: LaunchRequest,
  deps: LaunchDeps,
  execution: { executionId: string },
  started: Started,
): Promise<SandboxRecord> {
  const now = deps.core.now();
  const record = await deps.core.store.move(
    {
      id: sandbox.id,
      to: "running",
      when: { executionId: execution.executionId, from: ["starting"] },
      set: {
        address: started.address,
        envdVersion: started.envdVersion,
        startedAt: now,
        endAt: now + sandbox.timeoutSeconds * 1000,
      },
    },
    { type: "created" },
  );
  if (record === undefined) throw killedMeanwhile(sandbox.id);
  deps.core.routes.add(record);
  return record;
}

/** The caller got the same words. */
function failedStart({ message }: AppError): End {
  const detail = cleanDetail(message);
  return { reason: "create_failed", ...defined({ detail }) };
}

function killedMeanwhile(id: string): AppError {
  return new AppError("conflict", `Sandbox "${id}" was killed while it was starting`);
}

type Placed = ReturnType<Nodes["placing"]>;

/** One search for a node that starts the sandbox: attempts, refusals, and the time left. */
class Search {
  readonly #request: LaunchRequest;
  readonly #deps: LaunchDeps;
  readonly #deadline: number;
  readonly #excluded = new Map<string, string>();
  #refusals = 0;
  #failure: AppError | undefined;
  /** The last attempt had less time than a start needs. */
  #cut = false;

  constructor(request: LaunchRequest, deps: LaunchDeps) {
    this.#request = request;
    this.#deps = deps;
    this.#deadline = deps.core.now() + deps.core.timeouts.placementTimeoutMs;
  }

  /**
   * The next node to ask; waits while a node is expected back or has refused. The placement counts on that node at
   * once, so that parallel choices see it; `placed` reports the outcome.
   */
  async node(): Promise<{ readonly nodeId: string; readonly placed: Placed }> {
    for (;;) {
      const choice = this.#choose();
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

  /** Undefined: the start failed on this node, and another may succeed. Throws when no other node can. */
  async attempt(execution: { executionId: string; nodeId: string }, placed: Placed): Promise<Started | undefined> {
    const { start, sandbox } = this.#request;
    const { nodeId, executionId } = execution;
    const left = this.#deadline - this.#deps.core.now();
    const now = this.#deps.core.now();
    const record = this.#describe({ ...sandbox, ...execution, startedAt: now, endAt: now, deadlineAt: 0 });
    const timeoutMs = Math.max(1, Math.min(this.#deps.core.timeouts.startTimeoutMs, left));
    try {
      const started = await this.#deps.core.nodes.agent(nodeId).startExecution(
        {
          params: { executionId },
          body: { ...start, ...record, endAt: this.#deps.core.now() + sandbox.timeoutSeconds * 1000 },
        },
        { timeoutMs },
      );
      placed("started");
      return started;
    } catch (reason) {
      const error = AppError.from(reason);
      // A refusal is not a failure: the node may have room soon.
      if (verdictOf(error) === "busy") {
        placed("refused");
        this.#refusals++;
        await this.#pause();
        return undefined;
      }
      // A full disk says nothing about the sandbox: another node may have room.
      placed(isError(error, "no_space") ? "refused" : "failed");
      this.#deps.core.log.warn(
        { err: error, nodeId, executionId, sandboxId: sandbox.id },
        "could not start a sandbox on this node",
      );
      // The request itself is wrong (for one, less memory than the snapshot's takes): it is so on every node.
      if (isError(error, "conflict") || isError(error, "failed_precondition")) throw error;
      this.#failure = error;
      this.#cut = left < this.#deps.core.timeouts.startTimeoutMs;
      this.#excluded.set(nodeId, "failed to start it");
      if (this.#excluded.size >= MAX_ATTEMPTS) throw this.#failed(error);
      this.#deps.core.background.run("end failed start", () => this.#deps.ending.end(nodeId, executionId));
      return undefined;
    }
  }

  /** What the node keeps of the record, for a store that has lost it. A node of an earlier version does not know the field. */
  #describe(sandbox: NewSandbox): Pick<StartRequest, "record"> {
    if (this.#deps.core.nodes.get(sandbox.nodeId)?.facts.capabilities.records !== true) return {};
    const record = this.#deps.core.store.adopted.describe(sandbox);
    return record.length > MAX_RECORD_CHARACTERS ? {} : { record };
  }

  #choose(): Choice {
    const { nodeId, imageNodeId, least, region, start } = this.#request;
    const { cpuCount, memoryMB, diskSizeMB } = start.resources;
    const demand: Demand = {
      cpuCount,
      memoryBytes: memoryMB * MIB,
      diskBytes: diskSizeMB * MIB,
      memory: start.origin?.memory === true,
      network: allowsAnything(start.egress),
      labels: {},
      region,
      exclude: this.#excluded,
      home:
        nodeId === undefined ? undefined : { nodeId, has: start.origin === undefined ? "the volumes" : "the snapshot" },
      build: { id: start.build.buildId, nodeId: imageNodeId },
      ...(least === undefined ? {} : { least: { cpuCount: least.cpuCount, memoryBytes: least.memoryMB * MIB } }),
    };
    return choose(this.#deps.core.nodes.candidates(), demand, this.#deps.placement, this.#deps.core.random);
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
      // An attempt that had only the rest of the time after refusals does not count.
      const refused = this.#refusals > 0 && count === 1 && this.#cut;
      return refused ? busy() : timedOut(count, error);
    }
    // The node's last report was older than the loss of the ability.
    if (error.code === "memory_snapshots_unavailable") return error;
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

function timedOut(attempts: number, cause?: AppError): AppError {
  return new AppError("placement_timeout", failed(`placement timed out after ${attempts} attempt(s)`), { cause });
}

/**
 * Follows one build from the moment it has a node to its end: repeats the start request until the node confirms it, then
 * polls until the build has ended. The record holds all state, so after a crash the next process can continue.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { BuildBody, BuildState, RegistryAccess } from "../../shared/agent-api/build-shapes.ts";
import { AppError, isError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Seal } from "../../shared/program/sealing/seal.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { backoffMs, verdictOf } from "../nodes/retry.ts";
import type { BuildReason } from "../store/builds/builds.ts";
import type { Build } from "../store/builds/record.ts";
import type { Store } from "../store/store.ts";
import type { BaseTemplates } from "./base-template.ts";
import { sealSettings } from "./settings.ts";

export interface BuildRunDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly bases: Pick<BaseTemplates, "bring">;
  readonly sealing: Seal;
  readonly now: () => number;
  readonly random: () => number;
  readonly log: Log;
  readonly pollEveryMs: number;
  /** A build fails when its node is silent for this long. */
  readonly silentMs: number;
  /** The build is ready, and its tags point to it; `former`: the builds that the tags pointed to before. */
  ready(build: Build, former: ReadonlySet<string>): void;
  /** Counts the end of a build for the metrics. */
  observe(result: "ready" | "error", seconds: number): void;
}

export interface BuildRun {
  readonly build: Build & { readonly nodeId: string };
  /** Registry credentials of a build, kept until its node has them. */
  readonly credentials: {
    /** Undefined: the build needs none, or a restart of this process lost them. */
    get(): RegistryAccess | undefined;
    drop(): void;
  };
  /** Stops polling; the build continues. */
  readonly signal: AbortSignal;
}

/** How following ended. `refused`: the node has no room for the build. `lacks`: why it cannot have the build's base. It has begun neither. */
export type RunEnd = "over" | "refused" | "stopped" | { readonly lacks: AppError };

/** Most log entries of one poll. */
const ENTRIES = 500;
const CALL = { timeoutMs: 15_000 };
const LONGEST_WAIT_MS = 5_000;

export async function followBuild(run: BuildRun, deps: BuildRunDeps): Promise<RunEnd> {
  return new Follower(run, deps).follow();
}

class Follower {
  readonly #run: BuildRun;
  readonly #deps: BuildRunDeps;
  #accepted: boolean;
  #offset: number;
  #heardAt: number;

  constructor(run: BuildRun, deps: BuildRunDeps) {
    this.#run = run;
    this.#deps = deps;
    this.#accepted = run.build.accepted;
    this.#offset = run.build.logOffset;
    this.#heardAt = deps.now();
  }

  async follow(): Promise<RunEnd> {
    const { build, signal } = this.#run;
    const { pollEveryMs, random } = this.#deps;
    for (let failures = 0; ; ) {
      if (signal.aborted) return "stopped";
      if (this.#deps.now() > (build.deadlineAt ?? Number.MAX_SAFE_INTEGER)) {
        return this.#fail("the build took longer than the platform's time limit for builds");
      }
      try {
        const end = await this.#step();
        if (end !== undefined) return end;
        failures = 0;
      } catch (reason) {
        if (signal.aborted) return "stopped";
        const end = await this.#trouble(AppError.from(reason));
        if (end !== undefined) return end;
        failures++;
      }
      const longestMs = Math.max(pollEveryMs, LONGEST_WAIT_MS);
      const waitMs = failures === 0 ? pollEveryMs : backoffMs(failures, { firstMs: pollEveryMs, longestMs }, random);
      await sleep(waitMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #step(): Promise<RunEnd | undefined> {
    const { build, credentials } = this.#run;
    if (!this.#accepted && (credentials.get() !== undefined || !build.withAccess)) {
      const base = await this.#deps.bases.bring(build);
      if (base instanceof AppError) return { lacks: base };
      if (base === "on its way") {
        this.#heardAt = this.#deps.now();
        return undefined;
      }
      if (!(await this.#ask())) return "over";
    }
    for (;;) {
      const state = await this.#look();
      this.#heardAt = this.#deps.now();
      if (!this.#accepted) await this.#accept();
      if (state.entries.length > 0) {
        if (!(await this.#deps.store.builds.log(build.id, this.#offset, state.entries))) return "over";
        this.#offset += state.entries.length;
      }
      // The whole log is stored before the end: a client that sees the end may read no further.
      if (state.entries.length >= ENTRIES) continue;
      return state.status === "building" ? undefined : this.#over(state);
    }
  }

  /** False: the build has ended or was deleted. */
  async #ask(): Promise<boolean> {
    const { build, credentials, signal } = this.#run;
    const access = credentials.get();
    const { sealing, store, nodes } = this.#deps;
    const sealed = await store.builds.body(build.id);
    if (sealed === undefined) return false;
    const body = JSON.parse(sealing.open(sealed, build.id)) as BuildBody;
    const { from } = body;
    const whole: BuildBody =
      from.is === "image" && access !== undefined ? { ...body, from: { ...from, access } } : body;
    await nodes
      .agent(build.nodeId)
      .startBuild({ params: { buildId: build.id }, body: whole }, { ...CALL, signal })
      .catch((reason: unknown) => {
        throw refusesMode(reason, whole) ? earlier(build.nodeId, reason) : reason;
      });
    return this.#accept();
  }

  async #accept(): Promise<boolean> {
    // First the record: until it says so, only whoever has the credentials works on the build.
    const still = await this.#deps.store.builds.accepted(this.#run.build.id);
    this.#accepted = true;
    this.#run.credentials.drop();
    return still;
  }

  #look(): Promise<BuildState> {
    const { build, signal } = this.#run;
    const query = { offset: this.#offset, limit: ENTRIES };
    return this.#deps.nodes
      .agent(build.nodeId)
      .buildState({ params: { buildId: build.id }, query }, { ...CALL, signal });
  }

  /** Undefined: the failure may be temporary. */
  async #trouble(error: AppError): Promise<RunEnd | undefined> {
    const { build } = this.#run;
    const { nodeId } = build;
    this.#deps.log.warn({ err: error, buildId: build.id, nodeId }, "could not poll a build on its node");
    if (this.#accepted) {
      if (error.code === "not_found") {
        return this.#fail(`node ${nodeId} no longer has the build: its agent was restarted; build it again`);
      }
    } else {
      const verdict = verdictOf(error);
      if (verdict === "busy") return "refused";
      if (error.code === "not_found" && build.withAccess && this.#run.credentials.get() === undefined) {
        const why = "the registry's credentials were in memory only";
        return this.#fail(`the platform was restarted before the build began, and ${why}; build it again`);
      }
      if (verdict !== "silence" && verdict !== "not now") return this.#fail(error.message);
    }
    const silent = this.#deps.now() - this.#heardAt;
    if (silent < this.#deps.silentMs) return undefined;
    return this.#fail(`node ${nodeId} has not answered for ${Math.round(silent / 1000)} s`);
  }

  async #over({ status, reason, result }: BuildState): Promise<RunEnd> {
    const { build } = this.#run;
    if (status === "error") {
      const { message, step } = reason ?? { message: "the build failed" };
      return this.#end({ message, step }, "logged");
    }
    if (result === undefined)
      return this.#fail(`node ${build.nodeId} reports the build as ready, but without its result`);
    const { snapshot, settings } = result;
    const finished = await this.#deps.store.builds.finish(build.id, {
      image: result.image,
      sealedSettings: sealSettings(this.#deps.sealing, settings),
      user: settings.user,
      workdir: settings.workdir,
      envdVersion: result.envdVersion,
      snapshot: snapshot === undefined ? undefined : { id: snapshot.snapshotId, memory: snapshot.memory },
    });
    if (finished === undefined) return "over";
    this.#deps.ready(finished.build, finished.former);
    this.#observe("ready");
    return "over";
  }

  #fail(message: string): Promise<RunEnd> {
    return this.#end({ message, step: undefined }, "not logged");
  }

  async #end(reason: BuildReason, logged: "logged" | "not logged"): Promise<RunEnd> {
    if ((await this.#deps.store.builds.fail(this.#run.build.id, reason, logged)) !== undefined) this.#observe("error");
    return "over";
  }

  #observe(result: "ready" | "error"): void {
    const { id, nodeId, startedAt } = this.#run.build;
    const seconds = (this.#deps.now() - (startedAt ?? this.#deps.now())) / 1000;
    this.#deps.log.info({ buildId: id, nodeId, result, seconds }, "build ended");
    this.#deps.observe(result, seconds);
  }
}

/** Every agent of this version understands a symbolic mode. The field that an earlier one names is of another kind of step. */
function refusesMode(reason: unknown, { steps }: BuildBody): boolean {
  if (!isError(reason, "bad_request") || !reason.message.includes("field 'steps.")) return false;
  return steps.some((step) => step.type === "COPY" && step.mode !== undefined && !/^[0-7]+$/.test(step.mode));
}

function earlier(nodeId: string, cause: unknown): AppError {
  return new AppError(
    "bad_request",
    `the agent of node ${nodeId} is of an earlier version, which takes octal modes of COPY only: write 755 in place of u+x, or let its ` +
      "operator upgrade it",
    { cause },
  );
}

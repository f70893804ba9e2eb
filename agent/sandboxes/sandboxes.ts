/**
 * The live set: executions by id, routes by sandbox id. Starting and stopping are idempotent by execution id; a stop
 * during a start wins; nothing is routable before it is ready or after its stop has begun.
 */

import type { ExitReport, Started, StartRequest } from "../../shared/agent-api/routes.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { EgressPolicy } from "../../shared/policy/egress-policy.ts";
import { within } from "../../shared/program/deadline.ts";
import { createKeyedMutex } from "../../shared/program/keyed-mutex.ts";
import type { Log } from "../../shared/program/log.ts";
import type { LiveContainer } from "../containers/live-container.ts";
import type { Gate } from "../network/gate.ts";
import { whenRoom } from "../store/database/when-room.ts";
import type { ExecutionStore } from "../store/executions.ts";
import type { Disposal } from "./disposal.ts";
import { type LiveSet, sandboxOf } from "./live-set.ts";
import { createReplacing } from "./replacing.ts";
import { identity, type Sandbox, toStarted } from "./sandbox.ts";
import { type Start, whyNotStarted } from "./start.ts";

/** How long the end of a sandbox waits for room to be recorded. */
const RECORD_LIMIT_MS = 20_000;

export interface SandboxesDeps {
  /** The sandboxes that run already; only this part changes the set from now on. */
  readonly live: LiveSet;
  readonly start: Start;
  readonly disposal: Pick<Disposal, "kill" | "remove">;
  readonly gate: Pick<Gate, "hold" | "open">;
  readonly store: ExecutionStore;
  /** The record that the paused sandbox was stored with. */
  readonly recordOf: (sandboxId: string) => string | undefined;
  /** The node proxy: ends the streams of an execution. */
  readonly closeStreams: (executionId: string) => Promise<void>;
  /** Reads the last log lines while the sandbox still runs. Never throws, and its time is limited. */
  readonly beforeEnd: (sandbox: Sandbox) => Promise<void>;
  /** Called when a sandbox has started or ended, or its end time has changed. */
  readonly onChange: () => void;
  readonly onStart: (sandbox: Sandbox) => void;
  /** Called when a sandbox has ended without a request and its exit is recorded. */
  readonly onExit: (reason: ExitReport["reason"], sandbox: Sandbox) => void;
  /** Called when its processes are dead. True: it is kept as a paused sandbox, so its end is not reported as an exit. */
  readonly rescue: (sandbox: Sandbox) => Promise<boolean>;
  readonly maxSandboxes: number;
  /** Why nothing can begin here now, not even a paused sandbox; undefined: it can. */
  readonly standstill: () => AppError | undefined;
  /** Why this new sandbox cannot begin here now; undefined: it can. */
  readonly refusal: (body: Pick<StartRequest, "egress">) => AppError | undefined;
  readonly startLimitMs: number;
  readonly now: () => number;
  readonly log: Log;
}

interface EgressChange<T> {
  /** The new policy is in force when it resolves, the old one when it rejects. */
  readonly enforce: (sandbox: Sandbox) => Promise<void>;
  /** The part that needs the sandbox's help. The new policy stays in force when it fails. */
  readonly after: (sandbox: Sandbox) => Promise<T>;
}

export interface Sandboxes {
  start(executionId: string, body: StartRequest): Promise<Started>;
  /** Removes the route, ends streams and processes; resolves when all are dead. An unknown id is remembered as stopped. */
  stop(executionId: string): Promise<void>;
  setEndAt(executionId: string, endAt: number): void;
  /**
   * Puts another policy in force by `enforce` and records it; then calls `after` with the sandbox as it was before. One
   * change after the other; a stop and a pause wait for both. 404 for an unknown execution, 409 while it does
   * not run.
   */
  changeEgress<T>(executionId: string, egress: EgressPolicy, change: EgressChange<T>): Promise<T>;
  /** Removes the route while `work` runs. On success the execution ends and its end is recorded; else it continues. */
  leave<T>(executionId: string, work: (sandbox: Sandbox) => Promise<T>): Promise<T>;
  /** Ends it for a reason of the agent's own, and reports it. */
  end(executionId: string, reason: ExitReport["reason"]): Promise<void>;
  /** Docker reports that a container has ended. */
  died(containerId: string, exit: Pick<ExitReport, "reason" | "exitCode" | "detail">): void;
  route(sandboxId: string): { executionId: string; address: string; controlToken: string } | undefined;
  get(executionId: string): Sandbox | undefined;
  running(): Sandbox[];
  /** Sandboxes that are being paused: not over yet. */
  leaving(): Sandbox[];
  readonly starting: number;
  /** Refuses new starts and waits for those under way. */
  drain(): Promise<void>;
}

export function createSandboxes(deps: SandboxesDeps): Sandboxes {
  const { live, start, disposal, store, closeStreams, beforeEnd, onChange, onStart, now, log } = deps;
  const { entries, routes, add } = live;
  const state = { draining: false };
  const changes = createKeyedMutex();
  const changed = (executionId: string) => changes(executionId, () => Promise.resolve());

  const admit = (executionId: string, { sandboxId, origin, egress }: StartRequest) => {
    const replaced = origin?.replaces;
    if (state.draining) throw new AppError("unavailable", "the node is shutting down");
    if (store.wasStopped(executionId))
      throw new AppError("conflict", "the sandbox was killed before it started: start it again");
    if (entries.size - (replaced === undefined ? 0 : 1) >= deps.maxSandboxes)
      throw new AppError("node_busy", `node is at its limit of ${deps.maxSandboxes} sandboxes`);
    const standstill = deps.standstill();
    if (standstill !== undefined) throw standstill;
    // A paused sandbox has its disk here already, and its owner may resume it to make room.
    const refusal = origin?.is === "paused" ? undefined : deps.refusal({ egress });
    if (refusal !== undefined) throw refusal;
    for (const [id, entry] of entries) {
      if (sandboxOf(entry) === sandboxId && entry.is !== "stopping" && id !== replaced) {
        throw new AppError("conflict", "the sandbox already has another execution here");
      }
    }
  };

  const withRecord = (body: StartRequest): StartRequest => {
    if (body.record !== undefined || body.origin === undefined || body.origin.is === "snapshot") return body;
    const record = live.get(body.origin.replaces ?? "")?.record ?? deps.recordOf(body.sandboxId);
    return record === undefined ? body : { ...body, record };
  };

  const begin = (executionId: string, asked: StartRequest): Promise<Started> => {
    admit(executionId, asked);
    const body = withRecord(asked);
    const cancel = new AbortController();
    const done = within(deps.startLimitMs, async (limit) => {
      const signal = AbortSignal.any([cancel.signal, limit]);
      try {
        const replaced = body.origin?.replaces;
        const spec = { executionId, body };
        const launched = replaced === undefined ? await start(spec, signal) : await takePlace(replaced, spec, signal);
        // No await from here to the end of this function: the start is either cancelled or running.
        const sandbox: Sandbox = { executionId, ...launched, ...identity(body) };
        add(sandbox);
        onStart(sandbox);
        return toStarted(sandbox);
      } catch (error) {
        if (entries.get(executionId)?.is === "starting") entries.delete(executionId);
        throw whyNotStarted(error, signal, cancel.signal);
      } finally {
        onChange();
      }
    });
    entries.set(executionId, { is: "starting", sandboxId: body.sandboxId, done, cancel });
    return done;
  };

  /** The end of the sandbox that fills the disk can be recorded only once its own disk is gone. */
  const recordEnd = async (container: LiveContainer, record: () => void) => {
    const limit = performance.now() + RECORD_LIMIT_MS;
    let removed = false;
    const remove = () => {
      if (!removed) disposal.remove(container);
      removed = true;
    };
    await whenRoom(record, { giveUp: () => performance.now() > limit, onFull: remove });
    remove();
  };

  /** `record` is written once no process runs any more. */
  const finish = (sandbox: Sandbox, dead: boolean, record: () => void): Promise<void> => {
    const { executionId, sandboxId, container } = sandbox;
    if (routes.get(sandboxId)?.executionId === executionId) routes.delete(sandboxId);
    const done = (async () => {
      try {
        await closeStreams(executionId);
        await changed(executionId);
        if (!dead) {
          await beforeEnd(sandbox);
          await disposal.kill(container);
        }
        const kept = dead && (await deps.rescue(sandbox));
        if (!kept) await recordEnd(container, record);
        entries.delete(executionId);
      } catch (error) {
        // Not routable any more, but perhaps still running: the next stop tries again.
        entries.set(executionId, { is: "running", sandbox });
        throw error;
      } finally {
        onChange();
      }
    })();
    entries.set(executionId, { is: "stopping", sandboxId, done });
    return done;
  };

  const stop = async (executionId: string): Promise<void> => {
    const entry = entries.get(executionId);
    if (entry === undefined) {
      store.stop(executionId, now());
      return;
    }
    switch (entry.is) {
      case "stopping":
        return entry.done;
      case "leaving":
        await entry.done;
        // Either the pause failed, or the sandbox is paused and its execution has already ended.
        return entries.get(executionId)?.is === "running" ? stop(executionId) : undefined;
      case "running":
        return finish(entry.sandbox, false, () => store.stop(executionId, now()));
      case "starting":
        store.stop(executionId, now());
        entry.cancel.abort(
          new AppError("conflict", "the sandbox was killed while it started, or its caller had left: start it again"),
        );
        await entry.done.catch(() => undefined);
        // The start may have been just past its last check of the signal.
        if (entries.has(executionId)) await stop(executionId);
    }
  };

  const finishWith = (sandbox: Sandbox, dead: boolean, exit: Pick<ExitReport, "reason" | "exitCode" | "detail">) => {
    const { executionId, sandboxId } = sandbox;
    log.info({ executionId, sandboxId, ...exit }, "sandbox ended");
    return finish(sandbox, dead, () => {
      store.exit({ executionId, sandboxId, ...exit, at: now() });
      deps.onExit(exit.reason, sandbox);
    });
  };

  const leave = <T>(executionId: string, work: (sandbox: Sandbox) => Promise<T>): Promise<T> => {
    const entry = entries.get(executionId);
    if (entry?.is !== "running")
      throw new AppError("sandbox_not_found", `execution ${executionId} does not run on this node`);
    const { sandbox } = entry;
    const { sandboxId, container } = sandbox;
    // A change of the network policy may replace the entry while this function waits.
    const current = () => {
      const now = entries.get(executionId);
      return now?.is === "leaving" ? now.sandbox : sandbox;
    };
    if (routes.get(sandboxId)?.executionId === executionId) routes.delete(sandboxId);
    const left = (async () => {
      try {
        await closeStreams(executionId);
        await changed(executionId);
        const result = await work(current());
        entries.delete(executionId);
        return result;
      } catch (error) {
        add(current());
        if (!container.cgroup.alive()) await finishWith(current(), true, { reason: "exited" });
        throw error;
      } finally {
        onChange();
      }
    })();
    const done = left.then(ignore, ignore);
    entries.set(executionId, { is: "leaving", sandboxId, sandbox, done });
    return left;
  };

  const takePlace = createReplacing({ ...deps, running: live.get, leave });

  return {
    async start(executionId, body) {
      const entry = entries.get(executionId);
      if (entry === undefined) return begin(executionId, body);
      if (sandboxOf(entry) !== body.sandboxId)
        throw new AppError("conflict", `execution ${executionId} belongs to another sandbox than ${body.sandboxId}`);
      switch (entry.is) {
        case "starting":
          return entry.done;
        case "running":
          return toStarted(entry.sandbox);
        case "leaving":
        case "stopping":
          throw new AppError("conflict", "the sandbox is ending");
      }
    },

    stop,

    setEndAt(executionId, endAt) {
      const entry = entries.get(executionId);
      if (entry?.is !== "running")
        throw new AppError("sandbox_not_found", `execution ${executionId} does not run on this node`);
      store.setEndAt(executionId, endAt);
      const sandbox = { ...entry.sandbox, endAt };
      entries.set(executionId, { is: "running", sandbox });
      if (routes.has(sandbox.sandboxId)) routes.set(sandbox.sandboxId, sandbox);
      onChange();
    },

    changeEgress(executionId, egress, { enforce, after }) {
      const running = () => {
        const entry = entries.get(executionId);
        if (entry === undefined)
          throw new AppError("sandbox_not_found", `execution ${executionId} does not run on this node`);
        if (entry.is !== "running")
          throw new AppError("conflict", `execution ${executionId} is ${entry.is}, and only a running one can change`);
        return entry.sandbox;
      };
      running();
      return changes(executionId, async () => {
        const before = running();
        await enforce(before);
        store.setEgress(executionId, egress);
        // A pause that begins during this change waits for it, and then stores the new policy.
        const entry = entries.get(executionId);
        if (entry?.is === "running" || entry?.is === "leaving") {
          const sandbox = { ...entry.sandbox, egress };
          entries.set(executionId, { ...entry, sandbox });
          if (routes.get(sandbox.sandboxId)?.executionId === executionId) routes.set(sandbox.sandboxId, sandbox);
        }
        return after(before);
      });
    },

    leave,

    async end(executionId, reason) {
      const entry = entries.get(executionId);
      if (entry?.is === "running") await finishWith(entry.sandbox, false, { reason });
    },

    died(containerId, exit) {
      for (const entry of entries.values()) {
        if (entry.is !== "running" || entry.sandbox.container.id !== containerId) continue;
        const limit = { detail: `limit ${entry.sandbox.container.resources.memoryMB} MiB` };
        finishWith(entry.sandbox, true, exit.reason === "out_of_memory" ? { ...exit, ...limit } : exit).catch(
          (error: unknown) => log.error({ err: error }, "could not record an exit"),
        );
        return;
      }
    },

    route: live.route,
    get: live.get,
    running: live.running,
    leaving: live.leaving,
    get starting() {
      return live.starting();
    },

    async drain() {
      state.draining = true;
      const busy = [...entries.values()].flatMap((entry) => (entry.is === "running" ? [] : [entry.done]));
      await Promise.allSettled(busy);
    },
  };
}

function ignore(): void {
  // The caller of the operation gets the error.
}

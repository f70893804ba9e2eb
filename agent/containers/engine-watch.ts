/** Watches Docker's events for containers that end unexpectedly; compares all containers after each possible gap. */

import type { ExitReport } from "../../shared/agent-api/routes.ts";
import { pause } from "../../shared/program/deadline.ts";
import type { Log } from "../../shared/program/log.ts";
import type { ContainerEvent, Containers } from "./containers.ts";

const RETRY_MS = 1_000;
/** Events are requested from slightly before the last one: a repeated event is harmless. */
const OVERLAP_MS = 2_000;
/** Exit code of a first process that SIGKILL ended. */
const KILLED = 137;
/** Docker reports every kill for memory in a container. Only one of now can be what ended the first process. */
const OUT_OF_MEMORY_MS = 10_000;
/**
 * Docker learns of the kill for memory and of the end in two ways, and may tell the end first. Shorter than an edge waits for the report
 * of an end, before it ends streams as ones whose connection was lost.
 */
const LATE_MS = 1_500;
const LOOK_MS = 50;

type Gone = Pick<ExitReport, "reason" | "exitCode" | "detail">;

export interface EngineWatchDeps {
  readonly containers: Pick<Containers, "watch" | "list" | "inspect">;
  /** Containers that should run. */
  readonly owned: () => readonly string[];
  /** Tells whether a running sandbox has the container. Only such an end waits for its reason: a start could take any other container meanwhile. */
  readonly isSandbox: (containerId: string) => boolean;
  readonly onGone: (containerId: string, exit: Gone) => void;
  /** Docker answers again after an outage, usually as a new process. */
  readonly onBack: () => void;
  readonly now: () => number;
  readonly log: Log;
}

export interface EngineWatch {
  /** Whether Docker's events arrive now. */
  readonly connected: boolean;
  start(): void;
  stop(): Promise<void>;
}

export function createEngineWatch(deps: EngineWatchDeps): EngineWatch {
  const { containers, owned, isSandbox, onGone, onBack, now, log } = deps;
  const stopping = new AbortController();
  const state = { connected: false, away: false, since: now() };
  const outOfMemory = new Map<string, number>();
  let running: Promise<void> | undefined;

  const wasOutOfMemory = (id: string, seen: { readonly oomKilled: boolean }) => {
    const last = outOfMemory.get(id);
    return last === undefined ? seen.oomKilled : now() - last < OUT_OF_MEMORY_MS;
  };

  /** @param waitMs how long a kill for memory may be told after the end */
  const gone = async (id: string, exitCode: number | undefined, waitMs: number) => {
    if (!owned().includes(id)) return;
    const seen = await containers.inspect(id).catch(() => undefined);
    // An event of an earlier run: the same container was started again meanwhile.
    if (seen?.running === true) return;
    if (seen === undefined) onGone(id, { reason: "removed" });
    else {
      const code = exitCode ?? seen.exitCode;
      const until = now() + (code === KILLED && isSandbox(id) ? waitMs : 0);
      while (!wasOutOfMemory(id, seen) && now() < until && !stopping.signal.aborted) {
        await pause(LOOK_MS, stopping.signal);
        // The platform ends this sandbox meanwhile.
        if (!owned().includes(id)) return;
      }
      onGone(id, { reason: code === KILLED && wasOutOfMemory(id, seen) ? "out_of_memory" : "exited", exitCode: code });
    }
  };

  const onEvent = (event: ContainerEvent) => {
    state.since = now() - OVERLAP_MS;
    switch (event.kind) {
      case "oom":
        if (owned().includes(event.id)) outOfMemory.set(event.id, now());
        return;
      case "died":
      case "removed":
        void gone(event.id, event.exitCode, LATE_MS).finally(() => outOfMemory.delete(event.id));
    }
  };

  const lookAtAll = async () => {
    // In this order, a container that starts in between is in the list or not expected yet.
    const mine = owned();
    const alive = new Set((await containers.list()).filter((one) => one.running).map(({ id }) => id));
    for (const id of mine) if (!alive.has(id)) await gone(id, undefined, 0);
  };

  const watch = async () => {
    while (!stopping.signal.aborted) {
      try {
        const since = state.since;
        await lookAtAll();
        state.connected = true;
        if (state.away) onBack();
        state.away = false;
        await containers.watch(since, onEvent, stopping.signal);
      } catch (error) {
        state.away = true;
        if (!stopping.signal.aborted) log.warn({ err: error }, "Docker does not answer");
      }
      state.connected = false;
      await pause(RETRY_MS, stopping.signal);
    }
  };

  return {
    get connected() {
      return state.connected;
    },
    start() {
      state.since = now();
      running ??= watch();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

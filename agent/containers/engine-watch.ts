/** Hears from the engine when a container ends by itself; looks again at all of them whenever it may have missed one. */

import type { ExitReport } from "../../shared/agent-api/routes.ts";
import type { Log } from "../../shared/program/log.ts";
import type { ContainerEvent, Containers } from "./containers.ts";

const RETRY_MS = 1_000;
/** Events are asked for from a little earlier than the last one: hearing one twice is harmless. */
const OVERLAP_MS = 2_000;

type Gone = Pick<ExitReport, "reason" | "exitCode">;

export interface EngineWatchDeps {
  readonly containers: Pick<Containers, "watch" | "list" | "inspect">;
  /** Containers that should run. */
  readonly owned: () => readonly string[];
  readonly onGone: (containerId: string, exit: Gone) => void;
  /** It answers again after it was away: a new process, as a rule. */
  readonly onBack: () => void;
  readonly now: () => number;
  readonly log: Log;
}

export interface EngineWatch {
  readonly connected: boolean;
  stop(): Promise<void>;
}

export function watchEngine({ containers, owned, onGone, onBack, now, log }: EngineWatchDeps): EngineWatch {
  const stopping = new AbortController();
  const state = { connected: false, away: false, since: now() };
  const outOfMemory = new Set<string>();

  const gone = async (id: string, exitCode: number | undefined) => {
    if (!owned().includes(id)) return;
    const seen = await containers.inspect(id).catch(() => undefined);
    // Of an earlier life: the same container was started again meanwhile.
    if (seen?.running === true) return;
    if (seen === undefined) onGone(id, { reason: "removed" });
    else {
      const oom = seen.oomKilled || outOfMemory.has(id);
      onGone(id, { reason: oom ? "oom" : "exited", exitCode: exitCode ?? seen.exitCode });
    }
  };

  const onEvent = (event: ContainerEvent) => {
    state.since = now() - OVERLAP_MS;
    switch (event.kind) {
      case "oom":
        if (owned().includes(event.id)) outOfMemory.add(event.id);
        return;
      case "died":
      case "removed":
        void gone(event.id, event.exitCode).finally(() => outOfMemory.delete(event.id));
    }
  };

  const lookAtAll = async () => {
    // In this order: what is started in between is in the list, or not yet in question.
    const mine = owned();
    const running = new Set((await containers.list()).filter((one) => one.running).map(({ id }) => id));
    for (const id of mine) if (!running.has(id)) await gone(id, undefined);
  };

  const running = (async () => {
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
        if (!stopping.signal.aborted) log.warn({ err: error }, "the container engine is away");
      }
      state.connected = false;
      await pause(RETRY_MS, stopping.signal);
    }
  })();

  return {
    get connected() {
      return state.connected;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}

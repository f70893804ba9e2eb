/** Background work in rounds: one at a time; a failed round is logged and the next one runs; `stop` waits. */

import type { Log } from "./log.ts";

export interface Loop {
  /** Runs a round as soon as possible instead of at the next interval. */
  wake(): void;
  stop(): Promise<void>;
}

export interface LoopOptions {
  readonly name: string;
  readonly everyMs: number;
  readonly log: Log;
}

export function loop({ name, everyMs, log }: LoopOptions, round: (signal: AbortSignal) => unknown): Loop {
  const stopping = new AbortController();
  let wakeUp: () => void = () => undefined;
  let woken = false;

  const pause = () =>
    new Promise<void>((resolve) => {
      if (woken || stopping.signal.aborted) {
        resolve();
        return;
      }
      const timer = setTimeout(resolve, everyMs);
      wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  const running = (async () => {
    while (!stopping.signal.aborted) {
      woken = false;
      try {
        await round(stopping.signal);
      } catch (error) {
        if (!stopping.signal.aborted) log.warn({ err: error, loop: name }, "a background round failed");
      }
      await pause();
    }
  })();

  const wake = () => {
    woken = true;
    wakeUp();
  };
  return {
    wake,
    async stop() {
      stopping.abort();
      wake();
      await running;
    },
  };
}

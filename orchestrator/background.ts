/** Work that outlives the request that caused it. Nothing is lost at shutdown: `settled` waits for all of it. */

import type { Log } from "../shared/program/log.ts";

export interface Background {
  /** Runs it now; a failure is logged under `name` and otherwise of no consequence. */
  run(name: string, work: () => Promise<unknown>): void;
  /** Resolves when everything that was running has ended. */
  settled(): Promise<void>;
}

export function createBackground(log: Log): Background {
  const running = new Set<Promise<void>>();

  async function tried(name: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      log.warn({ err: error, work: name }, "background work failed");
    }
  }

  return {
    run(name, work) {
      const done = tried(name, work);
      running.add(done);
      void done.finally(() => running.delete(done));
    },
    async settled() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}

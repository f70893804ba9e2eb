/** Work that continues after its request is answered. At shutdown `settled` waits for all of it, so none is lost. */

import type { Log } from "../../shared/program/log.ts";

export interface Background {
  /** Starts the work now. A failure is logged under `name` and has no other effect. */
  run(name: string, work: () => Promise<unknown>): void;
  /** Resolves when all work that was running has ended. */
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

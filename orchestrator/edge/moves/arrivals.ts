/**
 * Waits until a sandbox that was taken from its node is elsewhere or stays paused, and resumes nothing. All requests that wait for
 * a sandbox share one wait.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { FindSandbox, Whereabouts } from "../sandbox-lookup.ts";

/** As long as a request waits for a resume by default. */
const WAIT_MS = 45_000;
const LOOK_EVERY_MS = 100;

export class Arrivals {
  /** Looks once. */
  readonly find: FindSandbox;
  readonly #waitMs: number;
  readonly #waiting = new Map<string, Promise<Whereabouts>>();
  readonly #stopping = new AbortController();

  constructor(find: FindSandbox, waitMs = WAIT_MS) {
    this.find = find;
    this.#waitMs = waitMs;
  }

  /** Where the sandbox is once nothing moves it any more, or after the limit, while it is still on its way. */
  arrived(sandboxId: string): Promise<Whereabouts> {
    let waiting = this.#waiting.get(sandboxId);
    if (waiting === undefined) {
      waiting = this.#wait(sandboxId).finally(() => this.#waiting.delete(sandboxId));
      this.#waiting.set(sandboxId, waiting);
    }
    return waiting;
  }

  /** Ends every wait with what was seen last. */
  stop(): void {
    this.#stopping.abort();
  }

  async #wait(sandboxId: string): Promise<Whereabouts> {
    const { signal } = this.#stopping;
    const until = performance.now() + this.#waitMs;
    for (;;) {
      const found = await this.find(sandboxId);
      if (!isOnItsWay(found) || signal.aborted || performance.now() >= until) return found;
      await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

function isOnItsWay(found: Whereabouts): boolean {
  return found.is === "transitioning" || (found.is === "paused" && found.moving);
}

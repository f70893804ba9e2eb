/**
 * Collects garbage of a burst of work once the sandbox is idle. V8's own collector for idle programs is off
 * (`launch.ts`): its timer expires while a sandbox is frozen, and the first request after the thaw would pay for it.
 */

/** Time without requests that counts as idle. */
const REST_MS = 10_000;
/** Smallest growth since the last garbage collection that is worth another one, which takes some 70 ms. */
const WORTH_BYTES = 1024 * 1024;

export interface IdleMemoryDeps {
  /** Bytes in use, those that a collection could free included. */
  readonly used: () => number;
  readonly collect: () => void;
}

export class IdleMemory {
  readonly #deps: IdleMemoryDeps;
  /** The first rest collects: it is not known how much of the heap is garbage. */
  #collected = 0;
  #touched = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: IdleMemoryDeps) {
    this.#deps = deps;
  }

  /** A request began or ended. */
  touch(): void {
    this.#touched = true;
    this.#timer ??= setInterval(() => this.#look(), REST_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    if (this.#touched) {
      this.#touched = false;
      return;
    }
    // An idle sandbox runs no timers until the next request.
    this.stop();
    if (this.#deps.used() < this.#collected + WORTH_BYTES) return;
    this.#deps.collect();
    this.#collected = this.#deps.used();
  }
}

/** The heap of this program and its memory outside of it. */
export function heapBytes(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/**
 * Gives back what an ordinary collection keeps for the next burst, too: 2.5 MB on Node 24. No effect where the program was started
 * without `--expose-gc`.
 */
export function collectGarbage(): void {
  globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" });
}

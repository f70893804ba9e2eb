/**
 * Gives back what a burst of work left on the heap, once the sandbox rests. V8's own collector for idle programs is off
 * (`launch.ts`): its timer expires while a sandbox is frozen, and the first request after the thaw paid for it.
 */

/** Quiet for this long is rest. */
const REST_MS = 10_000;
/** Less than this above the smallest heap seen at rest is not worth a collection. */
const WORTH_BYTES = 8 * 1024 * 1024;

export interface IdleMemoryDeps {
  /** Bytes that a collection could give back are part of it. */
  readonly used: () => number;
  readonly collect: () => void;
}

export class IdleMemory {
  readonly #deps: IdleMemoryDeps;
  #low = Number.POSITIVE_INFINITY;
  #touched = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: IdleMemoryDeps) {
    this.#deps = deps;
  }

  /** A request came or went. */
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
    // An idle sandbox sleeps: no timer until somebody comes again.
    this.stop();
    const used = this.#deps.used();
    if (used > this.#low + WORTH_BYTES) this.#deps.collect();
    this.#low = Math.min(this.#low, this.#deps.used());
  }
}

/** The heap of this program and what it holds outside of it. */
export function heapBytes(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Does nothing where the program was started without `--expose-gc`. */
export function collectGarbage(): void {
  globalThis.gc?.();
}

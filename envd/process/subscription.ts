/** One follower of a process: a bounded, ordered queue of output that slows the source when it is full. */

import { Wakeup } from "../runtime/wakeup.ts";

export type Stream = "stdout" | "stderr" | "pty";

export interface Chunk {
  readonly stream: Stream;
  readonly bytes: Uint8Array;
}

/** Number of unread bytes at which a follower slows the process. */
const HIGH_WATER_BYTES = 256 * 1024;

export class Subscription<End> {
  readonly #queue: Chunk[] = [];
  readonly #drained: () => void;
  readonly #closed: (subscription: Subscription<End>) => void;
  #queuedBytes = 0;
  #end: { readonly value: End } | undefined;
  readonly #wakeup = new Wakeup();

  /** @param hooks what to do when a full queue has room again, and when the follower leaves */
  constructor(hooks: { drained: () => void; closed: (subscription: Subscription<End>) => void }) {
    this.#drained = hooks.drained;
    this.#closed = hooks.closed;
  }

  get full(): boolean {
    return this.#queuedBytes >= HIGH_WATER_BYTES;
  }

  push(chunk: Chunk): void {
    this.#queue.push(chunk);
    this.#queuedBytes += chunk.bytes.length;
    this.#wakeup.wake();
  }

  /** Must be called after the last output. The follower gets the end once its queue is empty. */
  end(value: End): void {
    this.#end = { value };
    this.#wakeup.wake();
  }

  /**
   * The next chunk, or the end, or undefined after `idleMs` without output.
   * @throws the signal's reason when it aborts
   */
  async next(idleMs: number, signal: AbortSignal): Promise<Chunk | { readonly end: End } | undefined> {
    if (this.#queue.length === 0 && this.#end === undefined) await this.#wakeup.wait(idleMs, signal);
    signal.throwIfAborted();
    const chunk = this.#queue.shift();
    if (chunk !== undefined) {
      const wasFull = this.full;
      this.#queuedBytes -= chunk.bytes.length;
      if (wasFull && !this.full) this.#drained();
      return chunk;
    }
    return this.#end === undefined ? undefined : { end: this.#end.value };
  }

  /** Removes the follower; may be repeated. */
  close(): void {
    this.#queue.length = 0;
    this.#queuedBytes = 0;
    this.#closed(this);
  }
}

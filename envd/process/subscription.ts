/**
 * One follower of a process: a bounded, ordered queue of output that slows the source when it is full. A follower that
 * takes nothing from a full queue is dropped, because the process and all other followers wait for it.
 */

import { Wakeup } from "../runtime/wakeup.ts";

export type Stream = "stdout" | "stderr" | "pty";

export interface Chunk {
  readonly stream: Stream;
  readonly bytes: Uint8Array;
}

/** What a follower gets. */
export type Next<End> = Chunk | { readonly end: End } | "dropped" | undefined;

/** Number of unread bytes at which a follower slows the process. */
const HIGH_WATER_BYTES = 256 * 1024;
/** How long a follower may take nothing while its queue is full. */
export const STALLED_MS = 30_000;

export class Subscription<End> {
  readonly #queue: Chunk[] = [];
  readonly #drained: () => void;
  readonly #closed: (subscription: Subscription<End>) => void;
  #queuedBytes = 0;
  #end: { readonly value: End } | undefined;
  #stalled: NodeJS.Timeout | undefined;
  #dropped = false;
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
    this.#stalled ??= this.full ? setTimeout(() => this.#drop(), STALLED_MS).unref() : undefined;
    this.#wakeup.wake();
  }

  /** Must be called after the last output. The follower gets the end once its queue is empty, however long that takes. */
  end(value: End): void {
    this.#end = { value };
    this.#stopLimit();
    this.#wakeup.wake();
  }

  /**
   * The next chunk, or the end, or undefined after `idleMs` without output; "dropped" once and for all when it took none.
   * @throws the signal's reason when it aborts
   */
  async next(idleMs: number, signal: AbortSignal): Promise<Next<End>> {
    if (this.#queue.length === 0 && this.#end === undefined && !this.#dropped) await this.#wakeup.wait(idleMs, signal);
    signal.throwIfAborted();
    if (this.#dropped) return "dropped";
    const chunk = this.#queue.shift();
    if (chunk !== undefined) {
      this.#taken(chunk);
      return chunk;
    }
    return this.#end === undefined ? undefined : { end: this.#end.value };
  }

  /** Removes the follower; may be repeated. */
  close(): void {
    this.#stopLimit();
    this.#queue.length = 0;
    this.#queuedBytes = 0;
    this.#closed(this);
  }

  #taken(chunk: Chunk): void {
    const wasFull = this.full;
    this.#queuedBytes -= chunk.bytes.length;
    if (this.full) {
      this.#stalled?.refresh();
    } else if (wasFull) {
      this.#stopLimit();
      this.#drained();
    }
  }

  #stopLimit(): void {
    clearTimeout(this.#stalled);
    this.#stalled = undefined;
  }

  #drop(): void {
    this.#dropped = true;
    this.close();
    this.#wakeup.wake();
  }
}

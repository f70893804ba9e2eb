/** One request of a kernel that is under way: ready when its reply and the *idle* of the kernel were received. */

import { type Emit, type KernelEnd, KernelEnded, type KernelEvent, leftOut } from "../kernel.ts";
import { errorOfReply, eventsOf, isIdle } from "./events.ts";
import type { Message } from "./wire.ts";

/**
 * A kernel sends *idle* right after its reply. When none comes in this time without a message, it was lost: a kernel whose
 * queue is full drops messages.
 */
const LOST_IDLE_MS = 5_000;

export class PendingRequest {
  /** Fulfilled with the content of the reply. @throws {KernelEnded}, SyntaxError when the reply cannot be read */
  readonly done: Promise<Buffer>;
  #resolve: (reply: Buffer) => void = () => undefined;
  #reject: (reason: Error) => void = () => undefined;
  readonly #emit: Emit | undefined;
  #reply: Buffer | undefined;
  #idle = false;
  #failed = false;
  /** A message is being handed on, for as long as the client needs. */
  #taking = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param emit absent: the request's output is dropped */
  constructor(emit?: Emit) {
    this.#emit = emit;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // The kernel may end while the request is still being sent, before anything waits for its end.
    this.done.catch(() => undefined);
  }

  async output(message: Message): Promise<void> {
    if (isIdle(message)) {
      this.#idle = true;
      await this.#finish();
      return;
    }
    clearTimeout(this.#timer);
    this.#taking = true;
    try {
      for (const event of eventsOf(message)) await this.#take(event);
    } catch (error) {
      // A message that cannot be read is left out, and so is one that no text can hold: the run goes on.
      if (!(error instanceof SyntaxError)) await this.#take(leftOut(error));
    } finally {
      this.#taking = false;
    }
    if (this.#reply !== undefined) this.#waitForIdle();
  }

  reply(message: Message): void {
    this.#reply = message.content;
    if (this.#idle) void this.#finish();
    // What comes behind a message that is being taken is not lost.
    else if (!this.#taking) this.#waitForIdle();
  }

  ended(end: KernelEnd): void {
    clearTimeout(this.#timer);
    this.#reject(new KernelEnded(end));
  }

  async #take(event: KernelEvent): Promise<void> {
    // One error a run: what a kernel adds in its reply is the same one.
    if (event.type === "error" && this.#failed) return;
    this.#failed ||= event.type === "error";
    await this.#emit?.(event);
  }

  #waitForIdle(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#idle = true;
      void this.#finish();
    }, LOST_IDLE_MS);
  }

  async #finish(): Promise<void> {
    if (!this.#idle || this.#reply === undefined) return;
    clearTimeout(this.#timer);
    try {
      const error = this.#failed ? undefined : errorOfReply(this.#reply);
      if (error !== undefined) await this.#emit?.(error);
      this.#resolve(this.#reply);
    } catch (error) {
      // A reply that cannot be read ends its own run only.
      this.#reject(error instanceof Error ? error : new Error("the kernel's reply cannot be read", { cause: error }));
    }
  }
}

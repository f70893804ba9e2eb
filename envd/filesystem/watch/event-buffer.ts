/** Buffers events between a watch and its client. Bounded: an overflow ends the watch with an error. */

import { AppError } from "../../../shared/http/errors.ts";
import { Wakeup } from "../../runtime/wakeup.ts";
import type { WatchEvent, WatchSink } from "./directory-watch.ts";

/** Most events that wait; a slower client gets an error and has to watch again. */
const MOST_EVENTS = 65_536;

export class EventBuffer implements WatchSink {
  readonly #wakeup = new Wakeup();
  #events: WatchEvent[] = [];
  #failure: AppError | undefined;

  readonly event = (event: WatchEvent): void => {
    if (this.#events.length >= MOST_EVENTS) {
      this.failed(new AppError("unavailable", "events were lost: they were not taken fast enough; watch again"));
      return;
    }
    this.#events.push(event);
    this.#wakeup.wake();
  };

  readonly failed = (error: AppError): void => {
    this.#failure ??= error;
    this.#wakeup.wake();
  };

  /**
   * All events since the last call, or none after `idleMs` without events.
   * @throws {AppError} after the last event, with the reason of the end; the signal's reason when it aborts
   */
  async next(idleMs: number, signal: AbortSignal): Promise<readonly WatchEvent[]> {
    if (this.#events.length === 0 && this.#failure === undefined) await this.#wakeup.wait(idleMs, signal);
    signal.throwIfAborted();
    return this.take();
  }

  /** All events that were not taken. @throws {AppError} after the last event, with the reason of the end */
  take(): readonly WatchEvent[] {
    const events = this.#events;
    if (events.length === 0 && this.#failure !== undefined) throw this.#failure;
    this.#events = [];
    return events;
  }
}

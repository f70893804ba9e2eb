/** Watches for clients that poll: events wait here, within bounds, until they are fetched. */

import { AppError } from "../../../shared/http/errors.ts";
import { randomName } from "../../runtime/late-builtins.ts";
import { DirectoryWatch, type WatchEvent, type WatchOptions } from "./directory-watch.ts";
import { EventBuffer } from "./event-buffer.ts";
import type { WatchHub } from "./watch-hub.ts";

const MOST_WATCHERS = 256;
/** A watcher that was not polled for this long may be removed for a new one. */
const FORGOTTEN_MS = 10 * 60_000;

interface Polled {
  readonly watch: DirectoryWatch;
  readonly buffer: EventBuffer;
  readonly entryRoot: string | undefined;
  readonly askedAt: number;
}

export interface Fetched {
  /** Directory of the events' entries; undefined when entries were not requested. */
  readonly entryRoot: string | undefined;
  readonly events: readonly WatchEvent[];
}

export class PolledWatchers {
  readonly #hub: WatchHub;
  readonly #now: () => number;
  readonly #watchers = new Map<string, Polled>();

  constructor(hub: WatchHub, now: () => number) {
    this.#hub = hub;
    this.#now = now;
  }

  /** @returns its id. @throws {AppError} as WatchHub.arm, and resource_exhausted when there are too many in use */
  async create(options: WatchOptions, entryRoot: string | undefined): Promise<string> {
    await this.#makeRoom();
    const id = randomName(10);
    const buffer = new EventBuffer();
    const watch = await DirectoryWatch.open(this.#hub, options, buffer);
    this.#watchers.set(id, { watch, buffer, entryRoot, askedAt: this.#now() });
    return id;
  }

  /** Events since the last fetch. @throws {AppError} not_found, or the reason why there are no more events */
  fetch(id: string): Fetched {
    const polled = this.#get(id);
    this.#watchers.set(id, { ...polled, askedAt: this.#now() });
    return { entryRoot: polled.entryRoot, events: polled.buffer.take() };
  }

  /** @throws {AppError} not_found */
  async remove(id: string): Promise<void> {
    const { watch } = this.#get(id);
    this.#watchers.delete(id);
    await watch.close();
  }

  #get(id: string): Polled {
    const polled = this.#watchers.get(id);
    if (polled === undefined) throw new AppError("not_found", `watcher with id ${id.slice(0, 100)} not found`);
    return polled;
  }

  async #makeRoom(): Promise<void> {
    if (this.#watchers.size < MOST_WATCHERS) return;
    const [oldest] = [...this.#watchers].toSorted(([, a], [, b]) => a.askedAt - b.askedAt);
    if (oldest === undefined || this.#now() - oldest[1].askedAt < FORGOTTEN_MS)
      throw new AppError("resource_exhausted", `more than ${MOST_WATCHERS} watchers: remove some`);
    await this.remove(oldest[0]);
  }
}

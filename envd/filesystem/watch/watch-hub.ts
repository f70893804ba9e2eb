/** All directory watches of the sandbox on one inotify instance: maps watch descriptors to their owners. */

import { AppError } from "../../../shared/http/errors.ts";
import { errnoOf, fileError } from "../../system/errno.ts";
import type { System } from "../../system/system.ts";
import { SharedLock } from "../shared-lock.ts";
import { In, NESTED_MASK, ROOT_MASK } from "./watch-mask.ts";

export interface RawEvent {
  readonly wd: number;
  readonly mask: number;
  readonly name: string;
}

/** One watched tree, as the hub sees it. */
export interface WatchOwner {
  notified(event: RawEvent): void;
  /** Its watches are lost, and some events with them. */
  failed(error: AppError): void;
  /** Adds all its watches again, from the root. */
  rearm(): Promise<void>;
}

interface Pause {
  readonly over: Promise<void>;
  readonly end: () => void;
}

export class WatchHub {
  readonly #system: System;
  /** Owners of each watch descriptor. `#sweep` removes descriptors without owners. */
  readonly #owners = new Map<number, Set<WatchOwner>>();
  readonly #all = new Set<WatchOwner>();
  // Two owners may watch one directory and then share its descriptor: removal must not run beside addition.
  readonly #lock = new SharedLock();
  #pause: Pause | undefined;

  constructor(system: System) {
    this.#system = system;
    system.listen({
      notified: (wd, mask, name) => this.#notified({ wd, mask, name }),
      lost: () => this.#lost(),
    });
  }

  /** Must be called before the first `arm`; `leave` undoes it. */
  join(owner: WatchOwner): void {
    this.#all.add(owner);
  }

  async leave(owner: WatchOwner): Promise<void> {
    this.#all.delete(owner);
    let idle = false;
    for (const owners of this.#owners.values()) idle = (owners.delete(owner) && owners.size === 0) || idle;
    if (idle) await this.#sweep();
  }

  /**
   * Watches one directory. `armed` is called before any of its events.
   * @throws {AppError} not_found, bad_request when it is not a directory, resource_exhausted when the machine has no
   * watches left
   */
  async arm(path: string, owner: WatchOwner, options: { nested: boolean; armed: (wd: number) => void }): Promise<void> {
    while (this.#pause !== undefined) await this.#pause.over;
    const mask = options.nested ? NESTED_MASK : ROOT_MASK;
    const armed = (wd: number) => {
      const owners = this.#owners.get(wd) ?? new Set();
      this.#owners.set(wd, owners.add(owner));
      options.armed(wd);
    };
    await this.#lock
      .share(() => this.#system.watch(path, mask, armed))
      .catch((error: unknown) => {
        throw watchError(error, path);
      });
  }

  /** The owner no longer watches these directories. */
  async disarm(wds: readonly number[], owner: WatchOwner): Promise<void> {
    for (const wd of wds) this.#owners.get(wd)?.delete(owner);
    await this.#sweep();
  }

  /** See System.sync. */
  async sync(): Promise<void> {
    await this.#system.sync();
  }

  /** Closes inotify before a memory dump; watches stay known, and new ones wait. May be repeated. */
  async suspend(): Promise<void> {
    if (this.#pause !== undefined) return;
    let end = () => undefined as void;
    const over = new Promise<void>((resolve) => (end = resolve));
    this.#pause = { over, end };
    await this.#lock.alone(async () => {
      if (this.#owners.size > 0) await this.#system.unwatchAll();
      this.#owners.clear();
    });
  }

  /** Adds every watch again. May be repeated. Events in between are not reported. */
  async resume(): Promise<void> {
    const pause = this.#pause;
    this.#pause = undefined;
    if (pause === undefined) return;
    pause.end();
    await Promise.all([...this.#all].map((owner) => owner.rearm()));
  }

  async #sweep(): Promise<void> {
    await this.#lock.alone(async () => {
      const idle = [...this.#owners].filter(([, owners]) => owners.size === 0).map(([wd]) => wd);
      for (const wd of idle) this.#owners.delete(wd);
      if (idle.length === 0) return;
      if (this.#owners.size === 0) await this.#system.unwatchAll();
      else await Promise.all(idle.map((wd) => this.#system.unwatch(wd)));
    });
  }

  #notified(event: RawEvent): void {
    if (event.mask & In.Q_OVERFLOW) {
      this.#fail(new AppError("unavailable", "events were lost: too many at once; watch again"));
      return;
    }
    for (const owner of this.#owners.get(event.wd) ?? []) owner.notified(event);
    if (event.mask & In.IGNORED) this.#owners.delete(event.wd);
  }

  #lost(): void {
    this.#owners.clear();
    this.#fail(new AppError("unavailable", "the watch was lost: its helper ended unexpectedly"));
  }

  #fail(error: AppError): void {
    for (const owner of this.#all) owner.failed(error);
  }
}

function watchError(error: unknown, path: string): unknown {
  const options = { cause: error };
  switch (errnoOf(error)) {
    case "ENOSPC":
    case "EMFILE":
    case "ENFILE":
    case "ENOMEM":
      return new AppError("resource_exhausted", "the machine has no watches left", options);
    case "ENOENT":
      return new AppError("not_found", `path not found: '${path}'`, options);
    case "ENOTDIR":
      return new AppError("bad_request", `path is not a directory: '${path}'`, options);
    default:
      return fileError(error, path);
  }
}

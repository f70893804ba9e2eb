/** One watched directory, optionally with all below it: turns raw events into ordered events with names. */

import { posix } from "node:path";
import { EventType } from "../../../shared/envd-rpc/gen/filesystem_pb.js";
import { AppError, isError } from "../../../shared/http/errors.ts";
import { childrenOf, stat } from "../../system/disk.ts";
import { errnoOf, fileError } from "../../system/errno.ts";
import { eventTypes } from "./event-types.ts";
import type { RawEvent, WatchHub, WatchOwner } from "./watch-hub.ts";
import { In } from "./watch-mask.ts";

export interface WatchEvent {
  /** Relative to the watched directory; `.` for itself. */
  readonly name: string;
  readonly type: EventType;
}

export interface WatchSink {
  readonly event: (event: WatchEvent) => void;
  /** The last call: no event follows a failure. */
  readonly failed: (error: AppError) => void;
}

/** Raw events that wait while a new directory is being watched. */
const LONGEST_BACKLOG = 65_536;
const ARM_AT_ONCE = 32;

export class DirectoryWatch implements WatchOwner {
  readonly #hub: WatchHub;
  readonly #root: string;
  readonly #recursive: boolean;
  readonly #sink: WatchSink;
  /** Watch descriptor → directory relative to the root; `` for the root. */
  readonly #directories = new Map<number, string>();
  /** Names reported as created from a listing, for which the kernel's own event may still come. */
  readonly #foreseen = new Set<string>();
  readonly #backlog: (RawEvent | { readonly forget: readonly string[] })[] = [];
  #working = false;
  #closed = false;

  private constructor(hub: WatchHub, options: WatchOptions, sink: WatchSink) {
    this.#hub = hub;
    this.#root = options.path;
    this.#recursive = options.recursive;
    this.#sink = sink;
  }

  /** Active when this returns: later events are reported. @throws {AppError} as WatchHub.arm */
  static async open(hub: WatchHub, options: WatchOptions, sink: WatchSink): Promise<DirectoryWatch> {
    const watch = new DirectoryWatch(hub, options, sink);
    hub.join(watch);
    try {
      await watch.#armRoot();
    } catch (error) {
      await watch.close();
      throw error;
    }
    return watch;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#backlog.length = 0;
    await this.#hub.leave(this);
  }

  notified(event: RawEvent): void {
    this.#enqueue(event);
  }

  failed(error: AppError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#backlog.length = 0;
    this.#sink.failed(error);
  }

  async rearm(): Promise<void> {
    this.#directories.clear();
    this.#foreseen.clear();
    try {
      await this.#armRoot();
    } catch (error) {
      this.failed(AppError.from(error));
    }
  }

  async #armRoot(): Promise<void> {
    await this.#arm("", false);
    if (this.#recursive) await this.#armBelow([""], undefined);
  }

  #enqueue(item: RawEvent | { readonly forget: readonly string[] }): void {
    if (this.#closed) return;
    if (this.#backlog.length >= LONGEST_BACKLOG) {
      this.failed(new AppError("unavailable", "events were lost: too many at once; watch again"));
      return;
    }
    this.#backlog.push(item);
    if (!this.#working) void this.#work();
  }

  // One at a time: events inside a new directory follow the directory's own event.
  async #work(): Promise<void> {
    this.#working = true;
    try {
      for (let item = this.#backlog.shift(); item !== undefined; item = this.#backlog.shift()) {
        if ("forget" in item) for (const name of item.forget) this.#foreseen.delete(name);
        else await this.#tell(item);
      }
    } catch (error) {
      this.failed(AppError.from(error));
    } finally {
      this.#working = false;
    }
  }

  async #tell({ wd, mask, name }: RawEvent): Promise<void> {
    const directory = this.#directories.get(wd);
    if (directory === undefined) return;
    if (mask & In.IGNORED) this.#directories.delete(wd);
    // Events of a nested directory itself come from its parent.
    if (name === "" && directory !== "") return;
    const full = name === "" ? "." : posix.join(directory, name);
    const known = this.#foreseen.delete(full) && (mask & In.CREATE) !== 0;
    if (!known) for (const type of eventTypes(mask)) this.#sink.event({ name: full, type });
    if (!this.#recursive || (mask & In.ISDIR) === 0 || name === "") return;
    if (mask & (In.MOVED_FROM | In.DELETE)) await this.#forgetBelow(full);
    if (mask & In.CREATE && !known) await this.#follow(full, true);
    if (mask & In.MOVED_TO) await this.#follow(full, false);
  }

  /** Handles a new directory. Entries made before it is watched have no events: a listing finds and reports them. */
  async #follow(directory: string, reportContent: boolean): Promise<void> {
    if (!(await this.#arm(directory, true))) return;
    const reported: string[] = [];
    await this.#armBelow([directory], reportContent ? reported : undefined);
    if (reported.length === 0) return;
    await this.#hub.sync();
    // The backlog now holds every event before this; later ones are new.
    this.#enqueue({ forget: reported });
  }

  /** Watches all directories below those given. With `reported`, entries found are reported as created. */
  async #armBelow(from: readonly string[], reported: string[] | undefined): Promise<void> {
    let level = [...from];
    while (level.length > 0 && !this.#closed) {
      const next: string[] = [];
      for (let i = 0; i < level.length; i += ARM_AT_ONCE) {
        const found = await Promise.all(level.slice(i, i + ARM_AT_ONCE).map((directory) => this.#look(directory)));
        for (const entry of found.flat()) {
          if (reported !== undefined) await this.#reportFound(entry, reported);
          if (entry.directory && (await this.#arm(entry.name, true))) next.push(entry.name);
        }
      }
      level = next;
    }
  }

  async #reportFound({ name, directory }: FoundChild, reported: string[]): Promise<void> {
    this.#foreseen.add(name);
    reported.push(name);
    this.#sink.event({ name, type: EventType.CREATE });
    if (directory) return;
    const stats = await stat(posix.join(this.#root, name)).catch(() => undefined);
    // Its content was written before the watch began.
    if (stats?.isFile() === true && stats.size > 0) this.#sink.event({ name, type: EventType.WRITE });
  }

  async #look(directory: string): Promise<FoundChild[]> {
    const path = posix.join(this.#root, directory);
    const found: FoundChild[] = [];
    try {
      for await (const { name, isDirectory } of childrenOf(path))
        found.push({ name: posix.join(directory, name), directory: isDirectory });
    } catch (error) {
      if (!gone(error)) throw fileError(error, path);
    }
    return found;
  }

  /** @returns false when a nested directory has vanished already */
  async #arm(directory: string, nested: boolean): Promise<boolean> {
    const armed = (wd: number) => void this.#directories.set(wd, directory);
    try {
      await this.#hub.arm(posix.join(this.#root, directory), this, { nested, armed });
      return true;
    } catch (error) {
      if (nested && (isError(error, "not_found") || isError(error, "bad_request") || isError(error, "forbidden")))
        return false;
      throw error;
    }
  }

  async #forgetBelow(directory: string): Promise<void> {
    const inside = [...this.#directories].filter(([, name]) => name === directory || name.startsWith(`${directory}/`));
    for (const [wd] of inside) this.#directories.delete(wd);
    const wds = inside.map(([wd]) => wd);
    if (wds.length > 0) await this.#hub.disarm(wds, this);
  }
}

export interface WatchOptions {
  /** Absolute. */
  readonly path: string;
  readonly recursive: boolean;
}

interface FoundChild {
  readonly name: string;
  readonly directory: boolean;
}

function gone(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === "ENOENT" || errno === "ENOTDIR" || errno === "EACCES";
}

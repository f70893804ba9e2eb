/**
 * The functions of the kernel that envd needs and Node lacks: children as any user on real pipes and terminals, inotify,
 * extended attributes. svc-exec provides them; envd starts it once, and again when it was lost.
 */

import { constants } from "node:os";
import { AppError } from "../../shared/http/errors.ts";
import { onDisk } from "./file-names.ts";
import { type AnswerReader, Request } from "./frames.ts";
import { Helper } from "./helper.ts";

export interface SpawnPlan {
  readonly argv: readonly string[];
  /** `NAME=value`, the whole environment. */
  readonly env: readonly string[];
  readonly cwd: string;
  readonly uid: number;
  readonly gid: number;
  readonly groups: readonly number[];
  readonly oomScore: number;
  /** Soft limit of open files; -1 leaves it as it is. */
  readonly openFiles: number;
  /** A terminal of this size instead of pipes. */
  readonly terminal: { readonly cols: number; readonly rows: number } | undefined;
  /** False: standard input is /dev/null. Terminals always have an input. */
  readonly stdin: boolean;
}

/** End of a child: a wait status of the kernel, or nothing when svc-exec was lost. */
export type WaitStatus = number | undefined;

export interface Spawned {
  readonly pid: number;
  /** Paths that can be opened until `release`: the other ends of the child's pipes. Absent where there is none. */
  readonly stdin: string | undefined;
  readonly stdout: string;
  readonly stderr: string | undefined;
  readonly exited: Promise<WaitStatus>;
  /** Must be called when the paths have been opened, or will not be. */
  release(): void;
}

/** A failed system call: errno name and the step that failed. */
export class SystemError extends Error {
  readonly errno: string;
  readonly step: SpawnStep;

  constructor(errno: number, step: SpawnStep) {
    const name = errnoName(errno);
    super(`${step} failed with ${name}`);
    this.name = "SystemError";
    this.errno = name;
    this.step = step;
  }
}

/** In the order of `enum spawn_step`. */
const SPAWN_STEPS = ["call", "resources", "fork", "terminal", "user", "cwd", "exec"] as const;
export type SpawnStep = (typeof SPAWN_STEPS)[number];

export interface WatchListener {
  readonly notified: (wd: number, mask: number, name: string) => void;
  /** Every watch is lost, because svc-exec has ended. */
  readonly lost: () => void;
}

/** Attribute name without its `user.e2b.` or `user.svc.` → value. */
export type Attributes = Readonly<Record<string, string>>;

const FLAG_TERMINAL = 1;
const FLAG_STDIN = 2;
const PATHS_PER_REQUEST = 512;

export class System {
  readonly #path: string;
  readonly #exits = new Map<number, (status: WaitStatus) => void>();
  #helper: Promise<Helper> | undefined;
  #listener: WatchListener | undefined;
  #stopped = false;

  /** @param path of the svc-exec program */
  constructor(path: string) {
    this.#path = path;
  }

  /** Starts svc-exec ahead of its first use, while there surely is room for it. */
  async start(): Promise<void> {
    await this.#running();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const helper = await this.#helper?.catch(() => undefined);
    await helper?.stop();
  }

  listen(listener: WatchListener): void {
    this.#listener = listener;
  }

  /** @throws {SystemError} which step failed and how */
  async spawn(plan: SpawnPlan): Promise<Spawned> {
    const helper = await this.#running();
    const { terminal } = plan;
    const flags = (terminal === undefined ? 0 : FLAG_TERMINAL) | (plan.stdin ? FLAG_STDIN : 0);
    const limits = [plan.oomScore, plan.openFiles, terminal?.cols ?? 0, terminal?.rows ?? 0];
    const fields = [flags, plan.uid, plan.gid, ...limits, plan.groups, onDisk(plan.cwd), plan.argv, plan.env];
    return helper.request(Request.spawn, fields, (body) => this.#spawned(helper, body));
  }

  /** Signals the process, or its whole group. False when it has ended. */
  async signal(pid: number, signal: number, to: "process" | "group"): Promise<boolean> {
    const helper = await this.#running();
    return helper.request(Request.signal, [pid, signal, to === "group" ? 1 : 0], (body) => body.int() === 0);
  }

  /** @throws {SystemError} when the terminal has ended */
  async resize(pid: number, cols: number, rows: number): Promise<void> {
    const helper = await this.#running();
    await helper.request(Request.resize, [pid, cols, rows], mustSucceed);
  }

  /** `armed` gets the watch descriptor before its first event is reported. @throws {SystemError} */
  async watch(path: string, mask: number, armed: (wd: number) => void): Promise<void> {
    const helper = await this.#running();
    await helper.request(Request.watch, [mask, onDisk(path)], (body) => {
      mustSucceed(body);
      armed(body.int());
    });
  }

  async unwatch(wd: number): Promise<void> {
    const helper = await this.#running();
    await helper.request(Request.unwatch, [wd], () => undefined);
  }

  /** When this returns, every event before the call has been delivered. */
  async sync(): Promise<void> {
    const helper = await this.#running();
    await helper.request(Request.sync, [], () => undefined);
  }

  /** Closes the inotify instance with all its watches. */
  async unwatchAll(): Promise<void> {
    const helper = await this.#running();
    await helper.request(Request.unwatchAll, [], () => undefined);
  }

  /** The attributes of each path, in order; empty where a file has none or does not exist. */
  async getAttributes(paths: readonly string[]): Promise<Attributes[]> {
    const found: Attributes[] = [];
    for (let from = 0; from < paths.length; from += PATHS_PER_REQUEST) {
      const some = paths.slice(from, from + PATHS_PER_REQUEST).map(onDisk);
      const helper = await this.#running();
      const read = await helper.request(Request.getAttributes, [some], (body) => {
        mustSucceed(body);
        return some.map(() => readAttributes(body));
      });
      found.push(...read);
    }
    return found;
  }

  /** Replaces the metadata of the file. Skips values that the file already has. @throws {SystemError} */
  async setAttributes(path: string, attributes: Attributes): Promise<void> {
    const pairs = Object.entries(attributes).flatMap(([name, value]) => [`user.e2b.${name}`, value]);
    const helper = await this.#running();
    await helper.request(Request.setAttributes, [path, pairs], mustSucceed);
  }

  #spawned(helper: Helper, body: AnswerReader): Spawned {
    const errno = body.int();
    if (errno !== 0) throw new SystemError(errno, SPAWN_STEPS[body.int()] ?? "call");
    const pid = body.int();
    const end = (fd: number) => (fd < 0 ? undefined : `/proc/${helper.pid}/fd/${fd}`);
    const [stdin, stdout, stderr] = [end(body.int()), end(body.int()), end(body.int())];
    if (stdout === undefined) throw new AppError("internal", "svc-exec started a process without an output");
    const exited = new Promise<WaitStatus>((resolve) => this.#exits.set(pid, resolve));
    return { pid, stdin, stdout, stderr, exited, release: () => helper.tell(Request.release, [pid]) };
  }

  #running(): Promise<Helper> {
    if (this.#stopped) return Promise.reject(new AppError("unavailable", "the sandbox is stopping"));
    if (this.#helper !== undefined) return this.#helper;
    const starting = Helper.start(this.#path, {
      exited: (pid, status) => this.#exited(pid, status),
      notified: (wd, mask, name) => this.#listener?.notified(wd, mask, name),
      gone: () => this.#gone(),
    });
    this.#helper = starting;
    starting.catch(() => {
      if (this.#helper === starting) this.#helper = undefined;
    });
    return starting;
  }

  #exited(pid: number, status: number): void {
    const resolve = this.#exits.get(pid);
    this.#exits.delete(pid);
    resolve?.(status);
  }

  #gone(): void {
    this.#helper = undefined;
    const exits = [...this.#exits.values()];
    this.#exits.clear();
    for (const resolve of exits) resolve(undefined);
    this.#listener?.lost();
  }
}

function mustSucceed(body: AnswerReader): void {
  const errno = body.int();
  if (errno !== 0) throw new SystemError(errno, "call");
}

function readAttributes(body: AnswerReader): Attributes {
  const found: Record<string, string> = {};
  while (body.byte() === 1) {
    const name = body.text();
    const value = body.text();
    // `user.e2b.` and `user.svc.` are nine bytes both.
    found[name.slice(9)] = value;
  }
  return found;
}

function errnoName(errno: number): string {
  for (const [name, value] of Object.entries(constants.errno)) if (value === errno) return name;
  return `errno ${errno}`;
}

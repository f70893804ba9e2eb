/** One child: its output to every follower, its input, its end. Output without followers is read and dropped. */

import { AppError } from "../../shared/http/errors.ts";
import { withDeadline } from "../../shared/program/deadline.ts";
import type { Spawned, System, WaitStatus } from "../system/system.ts";
import { describeExit, type ExitReport } from "./exit-status.ts";
import type { InputEnd } from "./input-end.ts";
import type { Explain } from "./memory-kills.ts";
import { type OutputEnd, openEnds } from "./pipe-ends.ts";
import { type Stream, Subscription } from "./subscription.ts";

export interface ProcessConfig {
  readonly cmd: string;
  readonly args: readonly string[];
  readonly envs: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
}

/** The end of a process, as its followers get it. */
export type Ending =
  | { readonly is: "exit"; readonly report: ExitReport }
  | { readonly is: "deadline" }
  | { readonly is: "lost" };

export type Follower = Subscription<Ending>;

export interface ProcessOptions {
  readonly config: ProcessConfig;
  readonly tag: string | undefined;
  readonly terminal: boolean;
  /** Whether it was started with an input. */
  readonly stdin: boolean;
  /** The process is killed after this time; undefined: no limit. */
  readonly deadlineMs: number | undefined;
  /** Gets all output, beside the followers, without slowing the process. */
  readonly observe: (stream: Stream, bytes: Uint8Array) => void;
  /** Called once, at the moment of the end, unless envd itself killed the process. */
  readonly explain: Explain;
}

/** How long a kill waits. A process that lives longer is stuck in the kernel, for example waiting for a disk. */
const KILL_LIMIT_MS = 5_000;
/** How long a kill waits for the process's children; a zombie that its parent never reaps would block it for ever. */
const GROUP_LIMIT_MS = 500;
const GROUP_LOOK_MS = 5;
/** Longest time-out of a timer, about 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class Process {
  readonly pid: number;
  readonly config: ProcessConfig;
  readonly tag: string | undefined;
  readonly terminal: boolean;
  /** Resolves after every follower has got the last output. */
  readonly ended: Promise<Ending>;
  readonly #stdin: boolean;
  readonly #system: System;
  readonly #followers = new Set<Follower>();
  readonly #observe: ProcessOptions["observe"];
  readonly #explain: Explain;
  readonly #outputs: readonly OutputEnd[];
  #input: InputEnd | undefined;
  readonly #exited: Promise<unknown>;
  #expired = false;
  /** SendSignal was used: a grandchild that holds the output open must not delay the end. */
  #signalled = false;
  #killed = false;
  #gone = false;
  #paused = false;

  /** @throws ErrnoException when the pipes cannot be opened; the caller kills the child then */
  constructor(system: System, spawned: Spawned, options: ProcessOptions) {
    this.#system = system;
    this.pid = spawned.pid;
    this.config = options.config;
    this.tag = options.tag;
    this.terminal = options.terminal;
    this.#stdin = options.stdin;
    this.#observe = options.observe;
    this.#explain = options.explain;
    const ends = openEnds(spawned, options.terminal, (stream, bytes) => this.#publish(stream, bytes));
    this.#outputs = ends.outputs;
    this.#input = ends.input;
    const timer = this.#startDeadline(options.deadlineMs);
    this.#exited = spawned.exited;
    this.ended = this.#run(spawned.exited).finally(() => clearTimeout(timer));
  }

  follow(): Follower {
    const follower: Follower = new Subscription({
      drained: () => this.#flow(),
      closed: (closing) => {
        this.#followers.delete(closing);
        this.#flow();
      },
    });
    this.#followers.add(follower);
    return follower;
  }

  /**
   * Resolves when the process's input took all of it while the process ran.
   * @throws {AppError} failed_precondition when the process has no input, not_found when it ended first, internal when it
   * closed its input: some of it was lost
   */
  async write(bytes: Uint8Array): Promise<void> {
    if (!this.#stdin)
      throw new AppError(
        "failed_precondition",
        `process with pid ${this.pid} was started without stdin: to write to it, start it with stdin: true`,
      );
    const outcome = this.#input === undefined ? "lost" : bytes.length === 0 ? "taken" : await this.#input.write(bytes);
    if (outcome === "taken") return;
    if (this.#gone)
      throw new AppError("not_found", `process with pid ${this.pid} ended before it took all of its input`);
    throw new AppError(
      "internal",
      `error writing to stdin: process with pid ${this.pid}, or the client, has closed it`,
    );
  }

  /** End of file for the process; may be repeated. */
  closeInput(): void {
    this.#input?.end();
  }

  async resize(cols: number, rows: number): Promise<void> {
    await this.#system.resize(this.pid, cols, rows);
  }

  /**
   * SIGKILL goes to the whole process group, because a shell's children are useless without it, and the call returns
   * when the process has ended. Any other signal goes to the process alone, which may want to end its children itself.
   * @returns false when there is nothing left to signal
   * @throws {AppError} internal when the process has not ended 5 s after SIGKILL
   */
  async signal(signal: number): Promise<boolean> {
    this.#signalled = true;
    this.#killed ||= signal === 9;
    const reached = await this.#system.signal(this.pid, signal, signal === 9 || this.#gone ? "group" : "process");
    if (this.#gone) this.#drain();
    if (reached && signal === 9) await this.#dead();
    return reached || this.#gone;
  }

  async #dead(): Promise<void> {
    const exits = this.#exited.then(() => true);
    if (!(await withDeadline(exits, KILL_LIMIT_MS, () => false)))
      throw new AppError("internal", `process with pid ${this.pid} has not ended ${KILL_LIMIT_MS} ms after SIGKILL`);
    for (const limit = Date.now() + GROUP_LIMIT_MS; Date.now() < limit; await pause(GROUP_LOOK_MS))
      if (!(await this.#system.signal(this.pid, 0, "group"))) return;
  }

  async #run(exited: Promise<WaitStatus>): Promise<Ending> {
    const status = await exited;
    this.#gone = true;
    // At once, because another program may hold the outputs open for hours.
    const report = status === undefined ? undefined : this.#report(status);
    // A terminal's pipe is closed by svc-exec itself, once it is empty.
    const unattended = this.#signalled || this.#expired || status === undefined;
    if (unattended && !this.terminal) this.#drain();
    await Promise.all(this.#outputs.map((output) => output.ended));
    this.#input?.destroy();
    this.#input = undefined;
    const ending = this.#ending(report);
    for (const follower of this.#followers) follower.end(ending);
    return ending;
  }

  #report(status: number): ExitReport {
    const report = describeExit(status);
    return this.#killed ? report : this.#explain(report);
  }

  #ending(report: ExitReport | undefined): Ending {
    if (this.#expired) return { is: "deadline" };
    return report === undefined ? { is: "lost" } : { is: "exit", report };
  }

  #startDeadline(deadlineMs: number | undefined): NodeJS.Timeout | undefined {
    if (deadlineMs === undefined) return undefined;
    const expire = () => {
      this.#expired = true;
      // It may have ended at this moment, or svc-exec with it: then there is nothing to kill.
      this.signal(9).catch(() => undefined);
    };
    return setTimeout(expire, Math.min(deadlineMs, LONGEST_TIMER_MS));
  }

  #publish(stream: Stream, bytes: Uint8Array): void {
    this.#observe(stream, bytes);
    for (const follower of this.#followers) follower.push({ stream, bytes });
    this.#flow();
  }

  /** The slowest follower sets the pace. */
  #flow(): void {
    let full = false;
    for (const follower of this.#followers) full ||= follower.full;
    if (full === this.#paused) return;
    this.#paused = full;
    for (const output of this.#outputs) {
      if (full) output.pause();
      else output.resume();
    }
  }

  #drain(): void {
    for (const output of this.#outputs) output.drain();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

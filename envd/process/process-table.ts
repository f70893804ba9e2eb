/** Processes started by envd: running ones, and for a while the results of ended ones. */

import { posix } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import type { Journal } from "../runtime/journal.ts";
import type { Limits } from "../runtime/own-limits.ts";
import { isFileNow } from "../system/disk.ts";
import { type Spawned, type System, SystemError } from "../system/system.ts";
import type { MemoryKills } from "./memory-kills.ts";
import { outputJournal } from "./output-journal.ts";
import { type Ending, type Follower, Process } from "./process.ts";
import { planSpawn, type StartRequest, startError } from "./start-plan.ts";

/** How long a result is kept for followers that come late. */
const RETAIN_EXIT_MS = 30_000;
const RETAINED_EXITS = 1_000;

export type Selector = { readonly pid: number } | { readonly tag: string };

export interface Exited {
  readonly pid: number;
  readonly tag: string | undefined;
  readonly ending: Ending;
}

export interface StartOptions {
  readonly tag: string | undefined;
  readonly deadlineMs: number | undefined;
}

export class ProcessTable {
  readonly #system: System;
  readonly #journal: Journal;
  readonly #limits: Limits;
  readonly #memoryKills: MemoryKills;
  readonly #live = new Set<Process>();
  readonly #exited = new Map<number, Exited>();

  constructor(system: System, journal: Journal, limits: Limits, memoryKills: MemoryKills) {
    this.#system = system;
    this.#journal = journal;
    this.#limits = limits;
    this.#memoryKills = memoryKills;
  }

  list(): Process[] {
    return [...this.#live];
  }

  /**
   * Starts a process and follows its output from the first byte.
   * @throws {AppError} not_found, bad_request, forbidden or resource_exhausted: nothing was started
   */
  async start(
    request: StartRequest,
    { tag, deadlineMs }: StartOptions,
  ): Promise<{ process: Process; follower: Follower }> {
    const { config, terminal, cwd } = request;
    const plan = planSpawn(request, this.#limits);
    const explain = this.#memoryKills.watch();
    const spawned = await this.#system.spawn(plan).catch((error: unknown) => {
      throw startError(error, config.cmd, cwd, () => isFile(config.cmd, cwd));
    });
    const output = outputJournal(this.#journal, spawned.pid);
    const { stdin } = plan;
    const isTerminal = terminal !== undefined;
    const options = { config, tag, terminal: isTerminal, stdin, deadlineMs, observe: output.observe, explain };
    const process = this.#adopt(spawned, options);
    const follower = process.follow();
    this.#exited.delete(process.pid);
    for (const [pid, exited] of this.#exited) if (tag !== undefined && exited.tag === tag) this.#exited.delete(pid);
    this.#live.add(process);
    this.#journal.write("info", "process", "process started", { pid: process.pid, cmd: describe(process), tag });
    void process.ended.then((ending) => {
      output.flush();
      this.#end(process, ending);
    });
    return { process, follower };
  }

  /** @throws {AppError} not_found */
  get(selector: Selector): Process {
    const found = this.find(selector);
    if (found === undefined) throw processNotFound(selector);
    return found;
  }

  find(selector: Selector): Process | undefined {
    // The newest first: an older process with the same tag or pid may be listed while its output is still open.
    return [...this.#live].toReversed().find((process) => matches(process, selector));
  }

  /** Result of a process that ended within the last half minute. */
  findExited(selector: Selector): Exited | undefined {
    return [...this.#exited.values()].toReversed().find((exited) => matches(exited, selector));
  }

  #adopt(spawned: Spawned, options: ConstructorParameters<typeof Process>[2]): Process {
    try {
      return new Process(this.#system, spawned, options);
    } catch (error) {
      // No follower could read its output. It may have ended already; both are fine.
      this.#system.signal(spawned.pid, 9, "group").catch(() => undefined);
      throw new AppError("resource_exhausted", "the sandbox has no room for another open file", { cause: error });
    }
  }

  #end(process: Process, ending: Ending): void {
    this.#live.delete(process);
    const { pid, tag } = process;
    const exited: Exited = { pid, tag, ending };
    const fields = ending.is === "exit" ? { pid, ...ending.report } : { pid, reason: ending.is };
    this.#journal.write("info", "process", "process ended", { ...fields, cmd: describe(process) });
    if (this.#exited.size >= RETAINED_EXITS) {
      const [oldest] = this.#exited.keys();
      if (oldest !== undefined) this.#exited.delete(oldest);
    }
    this.#exited.set(pid, exited);
    setTimeout(() => {
      if (this.#exited.get(pid) === exited) this.#exited.delete(pid);
    }, RETAIN_EXIT_MS).unref();
  }
}

export function processNotFound(selector: Selector): AppError {
  const what = "pid" in selector ? `pid ${selector.pid}` : `tag ${selector.tag}`;
  return new AppError("not_found", `process with ${what} not found`);
}

/** Whether a call failed because its process, or the process's terminal, has just ended. */
export function hasEnded(reason: unknown): boolean {
  return reason instanceof SystemError && reason.errno === "ESRCH";
}

function matches(entry: { readonly pid: number; readonly tag: string | undefined }, selector: Selector): boolean {
  return "pid" in selector ? entry.pid === selector.pid : entry.tag === selector.tag;
}

function describe({ config }: Process): string {
  return [config.cmd, ...config.args].join(" ").slice(0, 512);
}

/** Whether the command is the path of a file; a name alone is looked for along PATH. */
function isFile(cmd: string, cwd: string): boolean {
  return cmd.includes("/") && isFileNow(posix.resolve(cwd, cmd));
}

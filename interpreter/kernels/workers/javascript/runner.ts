/** Runs cells in this process's own context, so that what they declare stays, and says what came of each. */

import { setImmediate as turn } from "node:timers/promises";
import { inspect } from "node:util";
import { constants, Script } from "node:vm";
import { bundleOf } from "./bundle.ts";
import type { Script as Cell } from "./cell.ts";
import type { Channel } from "./channel.ts";
import { readCell } from "./strip.ts";

/** Of this program, before cells get other arguments. */
const [, WORKER = ""] = process.argv;

export class Runner {
  readonly #language: string;
  readonly #channel: Channel;
  #count = 0;
  #fail: ((error: unknown) => void) | undefined;

  constructor(language: string, channel: Channel) {
    this.#language = language;
    this.#channel = channel;
  }

  /** Whether a run waits for a promise: only the end of the process stops what may go on then. */
  get isWaiting(): boolean {
    return this.#fail !== undefined;
  }

  async run(code: string): Promise<void> {
    this.#count += 1;
    try {
      const cell = await readCell(code, this.#language).catch(failed);
      // The server interrupts from here on: what follows until the script runs is short.
      this.#channel.send(["count", this.#count]);
      if ("error" in cell) throw cell.error;
      const value = await this.#valueOf(cell);
      if (value !== undefined) this.#channel.send(["result", true, bundleOf(value)]);
    } catch (error) {
      this.#channel.send(["error", ...described(error)]);
    }
    // Node tells of a promise that failed and that nothing waits for behind all that was ready: it is said in this run.
    await turn();
    this.#channel.send(["end"]);
  }

  /** An error that nothing caught: of the run that waits, else it is only printed. */
  uncaught(error: unknown): void {
    if (this.#fail === undefined) this.#channel.send(["output", "stderr", `Uncaught ${inspect(error)}\n`]);
    else this.#fail(error);
  }

  async #valueOf({ source, hasValue }: Cell): Promise<unknown> {
    const script = new Script(source, {
      filename: `${process.cwd()}/cell-${this.#count}.js`,
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
    const returned: unknown = script.runInThisContext({ breakOnSigint: true, displayErrors: true });
    const uncaught = new Promise<never>((_resolve, reject) => (this.#fail = reject));
    try {
      const value = await Promise.race([returned, uncaught]);
      return hasValue ? value : undefined;
    } finally {
      this.#fail = undefined;
    }
  }
}

function failed(error: unknown): { readonly error: unknown } {
  return { error };
}

/** Name, message, stack. */
function described(error: unknown): [string, string, string] {
  if (typeof error !== "object" || error === null || !("message" in error))
    return ["Error", String(error), `Uncaught ${inspect(error)}`];
  const { name, message, stack } = error as { name?: unknown; message: unknown; stack?: unknown };
  const trace = [text(stack) ?? inspect(error), ...causesOf(error, MOST_CAUSES)].join("\n");
  return [text(name) ?? "Error", text(message) ?? "", withoutOurs(trace)];
}

/** How deep, and how many of one error. */
const MOST_CAUSES = 5;
const MOST_ERRORS = 10;

/**
 * The errors inside of an error, because `fetch failed` says why only there. Without their other fields: a client's error has the headers
 * of its request, and those have keys.
 */
function causesOf(error: object, depth: number): string[] {
  const { cause, errors } = error as { cause?: unknown; errors?: unknown };
  const inside = [cause, ...(Array.isArray(errors) ? (errors as unknown[]).slice(0, MOST_ERRORS) : [])];
  return inside.flatMap((one) =>
    one instanceof Error && depth > 0
      ? [`[cause]: ${text(one.stack) ?? one.message}`, ...causesOf(one, depth - 1)]
      : [],
  );
}

/** Leaves out the calls behind the cell: the worker's, and Node's that lead to it. */
function withoutOurs(stack: string): string {
  const ours = [WORKER, "node:vm:", "node:internal/process/task_queues:"];
  const lines = stack.split("\n");
  return lines.filter((line) => !/^ +at /.test(line) || !ours.some((place) => line.includes(place))).join("\n");
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

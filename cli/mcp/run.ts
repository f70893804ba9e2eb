/** Runs a program in a sandbox and keeps what it writes, up to a limit: a model reads it. */

import { within } from "../../shared/program/deadline.ts";
import type { Inside } from "../inside/sandbox.ts";

/** Of each of the two streams; the beginning and the end of a longer one are kept. */
const MOST_BYTES = 64 * 1024;
const SIGKILL = 9;

export interface Program {
  readonly cmd: string;
  readonly args: readonly string[];
  readonly cwd: string | undefined;
  /** Absent: it has no input. */
  readonly input?: string;
  readonly timeoutMs: number;
}

export interface Ran {
  /** Undefined: its time was over, and it was ended. */
  readonly exitCode: number | undefined;
  readonly status: string;
  readonly stdout: string;
  readonly stderr: string;
}

export function runProgram(inside: Inside, program: Program, signal: AbortSignal): Promise<Ran> {
  return within(program.timeoutMs, (over) => runUntil(inside, program, { over, signal }));
}

async function runUntil(
  inside: Inside,
  program: Program,
  { over, signal }: { readonly over: AbortSignal; readonly signal: AbortSignal },
): Promise<Ran> {
  const ending = AbortSignal.any([over, signal]);
  const { cmd, args, cwd, input } = program;
  const events = inside.process.start(
    { process: { cmd, args: [...args], envs: {}, ...(cwd === undefined ? {} : { cwd }) }, stdin: input !== undefined },
    inside.as(undefined, { signal: ending }),
  );
  const kept = { stdout: new Kept(), stderr: new Kept() };
  const overOrThrow = (error: unknown) => {
    if (!over.aborted || signal.aborted) throw error;
    return `ended after ${program.timeoutMs / 1000} s`;
  };
  const texts = () => ({ stdout: kept.stdout.text(), stderr: kept.stderr.text() });
  let pid: number | undefined;
  try {
    for await (const { event } of events) {
      if (event?.event.case === "start") {
        pid = event.event.value.pid;
        if (input !== undefined) await feed(inside, pid, input);
      } else if (event?.event.case === "data") {
        const { output } = event.event.value;
        if (output.case === "stdout" || output.case === "stderr") kept[output.case].add(output.value);
      } else if (event?.event.case === "end") {
        const { exitCode, status } = event.event.value;
        return { exitCode, status, ...texts() };
      }
    }
  } catch (error) {
    if (pid !== undefined && ending.aborted) await end(inside, pid);
    return { exitCode: undefined, status: overOrThrow(error), ...texts() };
  }
  throw new Error("the connection ended before the program did");
}

async function feed(inside: Inside, pid: number, input: string): Promise<void> {
  const process = { selector: { case: "pid" as const, value: pid } };
  const value = Buffer.from(input);
  try {
    await inside.process.sendInput({ process, input: { input: { case: "stdin", value } } }, inside.as(undefined));
    await inside.process.closeStdin({ process }, inside.as(undefined));
  } catch {
    // A program that ends without reading its input is no failure.
  }
}

async function end(inside: Inside, pid: number): Promise<void> {
  const selector = { case: "pid" as const, value: pid };
  const call = inside.as(undefined, { timeoutMs: 5_000 });
  await inside.process.sendSignal({ process: { selector }, signal: SIGKILL }, call).catch(() => undefined);
}

/** The beginning and the end of what was written. */
class Kept {
  #head = Buffer.alloc(0);
  #tail = Buffer.alloc(0);
  #dropped = 0;

  add(data: Uint8Array): void {
    const half = MOST_BYTES / 2;
    const room = half - this.#head.length;
    if (room > 0) this.#head = Buffer.concat([this.#head, data.subarray(0, room)]);
    const rest = data.subarray(Math.max(0, room));
    if (rest.length === 0) return;
    const tail = Buffer.concat([this.#tail, rest]);
    this.#dropped += Math.max(0, tail.length - half);
    this.#tail = tail.subarray(-half);
  }

  text(): string {
    const gap = this.#dropped === 0 ? "" : `\n[… ${this.#dropped} bytes left out …]\n`;
    return `${this.#head.toString()}${gap}${this.#tail.toString()}`;
  }
}

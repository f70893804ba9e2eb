/** Runs a program of the host to its end: input on stdin, bounded output, a time limit. Never through a shell. */

import { spawn } from "node:child_process";

const MAX_OUTPUT_BYTES = 4 * 1024 * 1024;
/**
 * Limit of a command that changes the machine. A kill half-way leaves the machine in an unknown state, so the limit is longer than a
 * busy machine stands still. It is as long as that of a call of Docker, which holds the same locks.
 */
const CHANGE_LIMIT_MS = 60_000;
/** Limit of a command that only looks: its kill costs a repetition. */
const LOOK_LIMIT_MS = 30_000;
/** From the limit to the end of a killed program. The kernel may hold one for ever, for example on a disk that does not answer. */
const END_LIMIT_MS = 10_000;

interface CommandOptions {
  readonly input?: string | Uint8Array;
  /** Absent: that of a command that changes the machine. */
  readonly timeoutMs?: number;
  /** PATH of the program, when it differs from this program's. */
  readonly path?: string;
  /** Kills the program. The promise rejects when the program has ended. */
  readonly signal?: AbortSignal;
}

/**
 * The output, or an Error with the command, its exit code and what it printed. It settles at most ten seconds after the limit, also
 * while a killed program, or one that it has started, still holds on.
 */
export type RunCommand = (program: string, args: readonly string[], options?: CommandOptions) => Promise<string>;

export const runCommand: RunCommand = (program, args, { input = "", timeoutMs = CHANGE_LIMIT_MS, path, signal } = {}) =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: ["pipe", "pipe", "pipe"],
      ...(path === undefined ? {} : { env: { PATH: path } }),
    });
    child.once("error", (cause) => {
      over();
      reject(new Error(`cannot run ${program}`, { cause }));
    });
    const kill = () => child.kill("SIGKILL");
    const name = [program, ...args].join(" ");
    const state = { late: false };
    const late = () => {
      state.late = true;
      kill();
    };
    const limits: NodeJS.Timeout[] = [];
    const over = () => {
      for (const limit of limits) clearTimeout(limit);
      signal?.removeEventListener("abort", kill);
    };
    // No process: `error` follows. Where descriptors were missing, there are no streams either.
    if (child.pid === undefined) return;
    limits.push(setTimeout(late, timeoutMs), setTimeout(leave, timeoutMs + END_LIMIT_MS));
    signal?.addEventListener("abort", kill, { once: true });
    if (signal?.aborted === true) kill();
    const output = collect(child.stdout);
    const complaint = collect(child.stderr);
    // Without a listener, a program that ends before it has read its input would end the agent.
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
    child.once("close", (code, by) => {
      over();
      if (code === 0) resolve(output());
      else {
        const how = state.late ? `did not end within its limit of ${timeoutMs / 1_000} s` : `ended with ${code ?? by}`;
        reject(new Error(`${name} ${how}: ${complaint().trim()}`));
      }
    });

    function leave(): void {
      over();
      reject(new Error(`${name} did not end within its limit of ${timeoutMs / 1_000} s, nor when it was killed`));
      for (const stream of child.stdio) stream?.destroy();
      child.unref();
    }
  });

/** Runs commands that only look, with their limit of time. */
export function looking(run: RunCommand): RunCommand {
  return (program, args, options) => run(program, args, { timeoutMs: LOOK_LIMIT_MS, ...options });
}

function collect(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= MAX_OUTPUT_BYTES) chunks.push(chunk);
  });
  return () => Buffer.concat(chunks).toString("utf8");
}

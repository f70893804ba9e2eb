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

/** What is started. */
export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly input: string | Uint8Array;
  readonly path: string | undefined;
}

/** The starter of a command tells its caller these things. */
export interface Heard {
  printed(chunk: Buffer): void;
  complained(chunk: Buffer): void;
  /** The process has ended by `code` or by the signal `by`, and no other process holds its output open. */
  closed(code: number | null, by: string | null): void;
  /** It was not started, or what else happened. */
  failed(cause: unknown, what?: string): void;
}

interface Started {
  kill(): void;
  /** The caller has given up the command, and hears nothing more of it. */
  leave(): void;
}

/** Undefined: there is no process, and `failed` follows. */
export type StartCommand = (command: Command, heard: Heard) => Started | undefined;

export const startedBy =
  (start: StartCommand): RunCommand =>
  (program, args, { input = "", timeoutMs = CHANGE_LIMIT_MS, path, signal } = {}) =>
    new Promise((resolve, reject) => {
      const name = [program, ...args].join(" ");
      const output = collect();
      const complaint = collect();
      const state = { late: false };
      const limits: NodeJS.Timeout[] = [];
      const over = () => {
        for (const limit of limits) clearTimeout(limit);
        signal?.removeEventListener("abort", kill);
      };
      const started = start(
        { program, args, input, path },
        {
          printed: output.add,
          complained: complaint.add,
          closed(code, by) {
            over();
            if (code === 0) resolve(output.text());
            else {
              const how = state.late
                ? `did not end within its limit of ${timeoutMs / 1_000} s`
                : `ended with ${code ?? by}`;
              reject(new Error(`${name} ${how}: ${complaint.text().trim()}`));
            }
          },
          failed(cause, what) {
            over();
            reject(new Error(what === undefined ? `cannot run ${program}` : `${name}: ${what}`, { cause }));
          },
        },
      );
      if (started === undefined) return;
      const late = () => {
        state.late = true;
        kill();
      };
      limits.push(setTimeout(late, timeoutMs), setTimeout(leave, timeoutMs + END_LIMIT_MS));
      signal?.addEventListener("abort", kill, { once: true });
      if (signal?.aborted === true) kill();

      function kill(): void {
        started?.kill();
      }

      function leave(): void {
        over();
        reject(new Error(`${name} did not end within its limit of ${timeoutMs / 1_000} s, nor when it was killed`));
        started?.leave();
      }
    });

export const runCommand: RunCommand = startedBy(({ program, args, input, path }, heard) => {
  const child = spawn(program, args, {
    stdio: ["pipe", "pipe", "pipe"],
    ...(path === undefined ? {} : { env: { PATH: path } }),
  });
  child.once("error", (cause) => heard.failed(cause));
  // No process: `error` follows. Where descriptors were missing, there are no streams either.
  if (child.pid === undefined) return undefined;
  child.stdout.on("data", (chunk: Buffer) => heard.printed(chunk));
  child.stderr.on("data", (chunk: Buffer) => heard.complained(chunk));
  // Without a listener, a program that ends before it has read its input would end the agent.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  child.once("close", (code, by) => heard.closed(code, by));
  return {
    kill: () => void child.kill("SIGKILL"),
    leave() {
      for (const stream of child.stdio) stream?.destroy();
      child.unref();
    },
  };
});

/** Runs commands that only look, with their limit of time. */
export function looking(run: RunCommand): RunCommand {
  return (program, args, options) => run(program, args, { timeoutMs: LOOK_LIMIT_MS, ...options });
}

/** Of what was written, as much as is kept. */
function collect(): { readonly add: (chunk: Buffer) => void; readonly text: () => string } {
  const chunks: Buffer[] = [];
  let size = 0;
  return {
    add(chunk) {
      size += chunk.length;
      if (size <= MAX_OUTPUT_BYTES) chunks.push(chunk);
    },
    text: () => Buffer.concat(chunks).toString("utf8"),
  };
}

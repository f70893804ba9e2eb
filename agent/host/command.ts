/** Runs a program of the host to its end: input on stdin, bounded output, a time limit. Never through a shell. */

import { spawn } from "node:child_process";

const MAX_OUTPUT_BYTES = 4 * 1024 * 1024;

interface CommandOptions {
  readonly input?: string | Uint8Array;
  readonly timeoutMs?: number;
  /** PATH of the program, when it differs from this program's. */
  readonly path?: string;
  /** Kills the program. The promise rejects when the program has ended. */
  readonly signal?: AbortSignal;
}

/** The output, or an Error with the command, its exit code and what it printed. */
export type RunCommand = (program: string, args: readonly string[], options?: CommandOptions) => Promise<string>;

export const runCommand: RunCommand = (program, args, { input = "", timeoutMs = 10_000, path, signal } = {}) =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: ["pipe", "pipe", "pipe"],
      timeout: timeoutMs,
      killSignal: "SIGKILL",
      ...(path === undefined ? {} : { env: { PATH: path } }),
    });
    const kill = () => child.kill("SIGKILL");
    signal?.addEventListener("abort", kill, { once: true });
    child.once("close", () => signal?.removeEventListener("abort", kill));
    if (signal?.aborted === true) kill();
    const output = collect(child.stdout);
    const complaint = collect(child.stderr);
    // Without a listener, a program that ends before it has read its input would end the agent.
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
    child.once("error", (cause) => reject(new Error(`cannot run ${program}`, { cause })));
    child.once("close", (code, by) => {
      if (code === 0) resolve(output());
      else reject(new Error(`${[program, ...args].join(" ")} ended with ${code ?? by}: ${complaint().trim()}`));
    });
  });

function collect(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= MAX_OUTPUT_BYTES) chunks.push(chunk);
  });
  return () => Buffer.concat(chunks).toString("utf8");
}

/** Programs of the machine, each with a limit of time: one that hangs is killed with what it has started. */

import { type ChildProcess, spawn } from "node:child_process";

export interface Said {
  /** Undefined: the program is not there, or was killed. */
  readonly status: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  /** Why there is no status. */
  readonly problem: string | undefined;
}

interface Given {
  readonly limitMs?: number;
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly gid?: number;
  readonly cwd?: string;
  /** Aborted: the program is killed, or not started. */
  readonly signal?: AbortSignal;
}

const LIMIT_MS = 10_000;
const MOST = 32 * 1024 * 1024;
const INTERRUPTED = "interrupted";
export const PATH = "/opt/svc/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export type Run = (program: string, args: readonly string[], given?: Given) => Promise<Said>;

/** Never rejects. The environment of the caller is not passed on, apart from what `given` names. */
export const run: Run = (program, args, { limitMs = LIMIT_MS, input = "", env = {}, signal, ...who } = {}) =>
  new Promise((resolve) => {
    if (signal?.aborted === true) {
      resolve({ status: undefined, stdout: "", stderr: "", problem: INTERRUPTED });
      return;
    }
    const child = spawn(program, args, {
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
      cwd: "/",
      ...who,
      env: { PATH, LC_ALL: "C.UTF-8", ...env },
    });
    const said = { stdout: "", stderr: "" };
    let problem: string | undefined;
    const end = (why: string) => {
      problem = why;
      killGroup(child);
    };
    const onAbort = () => end(INTERRUPTED);
    signal?.addEventListener("abort", onAbort, { once: true });
    const timer = setTimeout(() => end(`${program} did not end within ${limitMs / 1000} s`), limitMs);
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        said[name] += text;
        if (said[name].length > MOST) end(`${program} wrote more than ${MOST} bytes`);
      });
    }
    const settle = (status: number | undefined, why: string | undefined) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      resolve({ status, ...said, problem: problem ?? why });
    };
    child.on("error", (error: NodeJS.ErrnoException) =>
      settle(undefined, error.code === "ENOENT" ? `${program} is not installed` : error.message),
    );
    child.on("close", (code, signal) =>
      settle(code ?? undefined, code === null ? `${program} was killed by ${signal ?? "a signal"}` : undefined),
    );
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
  });

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

/** The last words of a program that failed, for evidence: a line of at most 300 characters. */
export function lastWords({ problem, stderr, stdout, status }: Said): string {
  const line = (stderr.trim() || stdout.trim()).split("\n").at(-1)?.trim().slice(0, 300) ?? "";
  return problem ?? (line === "" ? `status ${status ?? "unknown"}` : line);
}

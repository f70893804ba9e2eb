/**
 * Processes and servers that tests of pause, fork and snapshots put into a sandbox, to check later that it is the same
 * sandbox.
 */

import type { Sandbox } from "e2b";
import type { Platform } from "../platform/platform.ts";
import { until } from "../runner/until.ts";

/** A process of its own that counts ten times a second, in its memory. */
export interface Counter {
  readonly pid: number;
  /** Reads the count that the process wrote last. */
  read(sandbox?: Sandbox): Promise<number>;
}

export async function startCounter(sandbox: Sandbox): Promise<Counter> {
  const file = "/tmp/count";
  const script = `n=0; while :; do n=$((n+1)); echo $n > ${file}.new; mv ${file}.new ${file}; sleep 0.1; done`;
  const handle = await sandbox.commands.run(script, { background: true, timeoutMs: 0 });
  // The process stays; the client leaves its stream, which would end with the pause.
  await handle.disconnect();
  const read = async (where = sandbox) =>
    Number((await where.commands.run(`cat ${file} 2>/dev/null || echo 0`)).stdout);
  await until(async () => (await read()) > 0, { what: "a first count", timeoutMs: 90_000 });
  return { pid: handle.pid, read };
}

/** The command line and pid of a process. The start time is left out, because a restored process has a new one. */
export async function identityOf(sandbox: Sandbox, pid: number): Promise<string> {
  return (await sandbox.commands.run(`tr '\\0' ' ' < /proc/${pid}/cmdline | cut -c1-200; echo ${pid}`)).stdout.trim();
}

/** Starts `python3 -m http.server` over a directory with one file; resolves when it answers inside. */
export async function startFileServer(sandbox: Sandbox, port: number, text: string): Promise<number> {
  await sandbox.files.write("/tmp/www/hello.txt", text);
  const command = `python3 -m http.server ${port} --directory /tmp/www`;
  const handle = await sandbox.commands.run(command, { background: true, timeoutMs: 0 });
  await handle.disconnect();
  const probe = `for i in $(seq 400); do curl -sf localhost:${port}/ >/dev/null && exit 0; sleep 0.1; done; exit 1`;
  await sandbox.commands.run(probe);
  return handle.pid;
}

/** Sends a request to a port of a sandbox, without credentials unless `headers` has them. */
export async function visit(
  platform: Platform,
  sandbox: Sandbox | string,
  { port, path = "/hello.txt", headers = {} }: { port: number; path?: string; headers?: Record<string, string> },
): Promise<{ readonly status: number; readonly text: string }> {
  const id = typeof sandbox === "string" ? sandbox : sandbox.sandboxId;
  const response = await fetch(`${platform.sandboxUrl}${path}`, {
    headers: { "svc-sandbox-id": id, "svc-sandbox-port": String(port), ...headers },
    signal: AbortSignal.timeout(60_000),
  });
  return { status: response.status, text: await response.text() };
}

export const pauseFor = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

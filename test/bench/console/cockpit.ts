/** Cockpit, another open console that a Debian package installs, as a page to measure beside this one. */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { until } from "../../support/runner/until.ts";

const PROGRAM = "/usr/lib/cockpit/cockpit-ws";
const BRIDGE = "/usr/bin/cockpit-bridge";
const PORT = 9_091;

interface Cockpit {
  readonly url: string;
  stop(): void;
}

/** For this machine alone and without a log-in. Undefined: it is not installed (`scripts/host/test/cockpit`). */
export async function startCockpit(): Promise<Cockpit | undefined> {
  if (!existsSync(PROGRAM) || !existsSync(BRIDGE)) return undefined;
  const args = ["--no-tls", "--address", "127.0.0.1", "--port", String(PORT), "--local-session", BRIDGE];
  const child = spawn(PROGRAM, args, { stdio: "ignore" });
  const url = `http://127.0.0.1:${PORT}/`;
  try {
    await until(() => answers(url, child), { what: "an answer of Cockpit", timeoutMs: 20_000 });
  } catch (error) {
    child.kill();
    throw error;
  }
  return { url, stop: () => void child.kill() };
}

async function answers(url: string, { exitCode }: ChildProcess): Promise<boolean> {
  if (exitCode !== null) throw new Error(`Cockpit has ended with code ${exitCode}`);
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}

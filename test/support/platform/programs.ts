/** The programs of an instance as processes: tests find them, kill them, and wait until they are ready again. */

import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { until } from "../runner/until.ts";
import { agentStatus } from "./agent-pages.ts";
import { checkout, type Platform, readEnvFile } from "./platform.ts";

export type Program = "orchestrator" | "agent";
/** What an instance runs that may have an edge of its own, or nothing else. */
export type Service = Program | "edge";

const execute = promisify(execFile);

/** Runs a program and resolves to its output; throws with its stderr when it fails. */
export async function run(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  timeoutMs = 300_000,
): Promise<string> {
  const { stdout } = await execute(command, [...args], {
    maxBuffer: 64 << 20,
    timeout: timeoutMs,
    env: { ...process.env, ...env },
  });
  return stdout;
}

/** Starts, stops, restarts or finds one program, or reads its log, through the scripts (scripts/README.md). */
export function service(
  platform: Platform,
  verb: "start" | "stop" | "restart" | "pid" | "log",
  program: Service,
): Promise<string> {
  return run(`${checkout}scripts/service`, [verb, program], { SVC_INSTANCE: platform.instance });
}

/**
 * Reads a setting as the program has it: the operator's own file wins.
 * @param fallback the program's default, for a setting that may be in neither file
 */
export function settingOf(platform: Platform, program: Service, name: string, fallback?: string): string {
  const own = readEnvFile(`${platform.paths.etc}/config.env`).get(name);
  const value = own ?? readEnvFile(`${platform.paths.etc}/${program}.env`).get(name) ?? fallback;
  if (value === undefined) throw new Error(`${program} has no ${name}`);
  return value;
}

/** Where the node has the disks of its containers: an operator may name another file system. */
export function disksOfNode(platform: Platform): string {
  return settingOf(platform, "agent", "SVC_DISKS_DIR", `${platform.paths.state}/agent/disks`);
}

/** Throws while the program has no process: as a number, no answer would be this process's own group. */
export async function pidOf(platform: Platform, program: Service): Promise<number> {
  const pid = Number((await service(platform, "pid", program)).trim());
  if (!(pid > 0)) throw new Error(`the ${program} does not run`);
  return pid;
}

/** Kills a program with SIGKILL; its supervisor starts it again. */
export async function killHard(platform: Platform, program: Service): Promise<void> {
  process.kill(await pidOf(platform, program), "SIGKILL");
}

/** Waits until both programs are ready and the orchestrator knows the node. */
export async function untilReady(platform: Platform): Promise<void> {
  const ready = async () =>
    (await agentStatus(platform)) === 200 && (await status(`${platform.apiUrl}/readyz`)) === 200;
  await until(ready, { what: "both programs ready", timeoutMs: 120_000, everyMs: 100 });
}

/** Asks a program for a page, and resolves to the status; 0 when nothing answers. */
export function status(url: string): Promise<number> {
  return fetch(url, { signal: AbortSignal.timeout(5000) }).then(
    async (response) => {
      await response.arrayBuffer();
      return response.status;
    },
    () => 0,
  );
}

/** Finds the agent's egress process, which serves redirected connections and names; throws while there is none. */
export async function egressPid(platform: Platform): Promise<number> {
  const agent = await pidOf(platform, "agent");
  const children = (await readFile(`/proc/${agent}/task/${agent}/children`, "utf8")).split(" ").filter(Boolean);
  for (const pid of children) {
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (/egress\.js|svc-egress/.test(command)) return Number(pid);
  }
  throw new Error("the agent has no egress process");
}

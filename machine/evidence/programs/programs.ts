/** The running programs, asked themselves, and what the kernel says of their processes: a shell may see another world. */

import { createHash } from "node:crypto";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { ask } from "../../base/http.ts";
import { type Instance, type Program, textOf } from "../../base/instance.ts";
import type { Machine } from "../../base/this-machine.ts";
import { NO_UNIT, type ProgramSeen, type UnitSeen } from "../evidence.ts";

export async function lookAtPrograms(machine: Machine): Promise<readonly ProgramSeen[]> {
  return Promise.all(machine.instance.programs.map((program) => look(machine, program)));
}

async function look(machine: Machine, program: Program): Promise<ProgramSeen> {
  const { instance, run } = machine;
  const unit = await unitOf(machine, program);
  const pid = unit === undefined ? pidOf(instance, program) : unit.pid;
  const { app } = instance.places;
  const installed = existsSync(app)
    ? (await run(join(app, "node"), [join(app, `${program}.js`), "--version"])).stdout.trim()
    : "";
  return {
    program,
    pid,
    supervised: unit === undefined ? isSupervised(instance, program) : unit.pid !== undefined,
    ...(pid === undefined
      ? { silent: undefined, failing: {}, certificate: undefined, version: undefined }
      : await answersOf(instance, program)),
    installed: installed === "" ? undefined : installed,
    ...processOf(pid),
    settingsChanged: pid !== undefined && hasOtherSettings(instance, program),
    unit,
  };
}

/** What the kernel lets the process have. */
function processOf(pid: number | undefined): Pick<ProgramSeen, "files" | "groups" | "capabilities"> {
  if (pid === undefined) return { files: undefined, groups: [], capabilities: undefined };
  const status = textOf(`/proc/${pid}/status`) ?? "";
  const files = /^Max open files\s+(\d+|unlimited)/m.exec(textOf(`/proc/${pid}/limits`) ?? "")?.[1];
  const capabilities = /^CapEff:\s+([0-9a-f]+)$/m.exec(status)?.[1];
  return {
    files: files === "unlimited" ? Number.MAX_SAFE_INTEGER : files === undefined ? undefined : Number(files),
    groups: (/^Groups:\s*(.*)$/m.exec(status)?.[1] ?? "").split(/\s+/).filter(Boolean).map(Number),
    capabilities: capabilities === undefined ? undefined : BigInt(`0x${capabilities}`),
  };
}

/** Where a program answers whether it is ready, as scripts/lib/services.sh has it. */
export function urlOf(instance: Instance, program: Program): string {
  const setting = (name: string) => instance.setting(program, name) ?? "";
  switch (program) {
    case "orchestrator":
      return `http://127.0.0.1:${setting("SVC_API_PORT")}`;
    case "edge":
      return `http://127.0.0.1:${setting("SVC_EDGE_STATUS_PORT")}`;
    case "agent": {
      const isTls = instance.role === "node" || setting("SVC_JOIN_TOKEN_FILE") !== "";
      const host = setting("SVC_AGENT_HOST");
      const named = host.includes(":") ? `[${host}]` : host;
      return isTls ? `https://${named}:${setting("SVC_AGENT_PORT")}` : `http://127.0.0.1:${setting("SVC_AGENT_PORT")}`;
    }
  }
}

type Answers = Pick<ProgramSeen, "silent" | "failing" | "certificate" | "version">;

async function answersOf(instance: Instance, program: Program): Promise<Answers> {
  const url = urlOf(instance, program);
  try {
    const { text } = await ask({ url: `${url}/readyz?verbose` });
    const said = program === "agent" ? { failing: failingOfLines(text), certificate: undefined } : saidInJson(text);
    return { silent: undefined, ...said, version: program === "orchestrator" ? await versionOf(url) : undefined };
  } catch (error) {
    const silent = error instanceof Error ? error.message : String(error);
    return { silent, failing: {}, certificate: undefined, version: undefined };
  }
}

/** Pure. A program serves with a certificate that clients refuse too, so that is no failure of its readiness. */
export function saidInJson(text: string): Pick<ProgramSeen, "failing" | "certificate"> {
  const { checks = {} } = JSON.parse(text) as { readonly checks?: Readonly<Record<string, string>> };
  return {
    failing: Object.fromEntries(Object.entries(checks).filter(([, said]) => !said.startsWith("ok"))),
    certificate: /^ok, except that ([^]*)$/.exec(checks["certificate"] ?? "")?.[1],
  };
}

/** Pure. @param text lines `ok NAME` and `fail NAME: PROBLEM` */
export function failingOfLines(text: string): Readonly<Record<string, string>> {
  const lines = text.split("\n").flatMap((line) => {
    const [, name, problem = ""] = /^fail ([^:]+)(?:: (.*))?$/.exec(line.trim()) ?? [];
    return name === undefined ? [] : [[name, problem] as const];
  });
  return Object.fromEntries(lines);
}

async function versionOf(url: string): Promise<string> {
  const { version, commit } = JSON.parse((await ask({ url: `${url}/version` })).text) as Record<string, string>;
  return `${version ?? ""} (${commit ?? ""})`;
}

type Unit = UnitSeen & { readonly pid: number | undefined };

const SHOWN = "LoadState,ActiveState,SubState,MainPID,NRestarts,NeedDaemonReload,ExecMainStartTimestampMonotonic";

async function unitOf({ instance, run }: Machine, program: Program): Promise<Unit | undefined> {
  if (!existsSync("/run/systemd/system")) return undefined;
  const name = `svc-${program}${instance.name === "" ? "" : `-${instance.name}`}.service`;
  const { stdout } = await run("systemctl", ["show", "--property", SHOWN, name]);
  return unitIn(name, stdout, Number((textOf("/proc/uptime") ?? "").split(" ", 1)[0]));
}

/** Pure. @param shown by `systemctl show` @param uptime of the machine, in seconds */
export function unitIn(name: string, shown: string, uptime: number): Unit {
  const value = (key: string) => new RegExp(`^${key}=(.*)$`, "m").exec(shown)?.[1] ?? "";
  const pid = Number(value("MainPID"));
  const begun = Number(value("ExecMainStartTimestampMonotonic")) / 1_000_000;
  return {
    name,
    state: value("LoadState") === "not-found" ? NO_UNIT : `${value("ActiveState")} (${value("SubState")})`,
    pid: pid > 0 ? pid : undefined,
    restarts: Number(value("NRestarts")) || 0,
    runningSeconds: pid > 0 && begun > 0 ? uptime - begun : undefined,
    isStale: value("NeedDaemonReload") === "yes",
  };
}

/** A pid file alone proves nothing: process ids are used again. */
function pidOf({ places }: Instance, program: Program): number | undefined {
  const pid = Number(textOf(join(places.run, `${program}.pid`))?.trim());
  return pid > 0 && commandOf(pid).includes(`${program}.js`) ? pid : undefined;
}

function isSupervised({ places }: Instance, program: Program): boolean {
  const pid = Number(textOf(join(places.run, `${program}.supervisor.pid`))?.trim());
  return pid > 0 && commandOf(pid).includes("supervise");
}

function commandOf(pid: number): string {
  return (textOf(`/proc/${pid}/cmdline`) ?? "").replaceAll("\0", " ");
}

/** Compares as scripts/lib/services.sh does: the links of the versions, and both files with settings. */
function hasOtherSettings({ places }: Instance, program: Program): boolean {
  const known = textOf(join(places.run, `${program}.fingerprint`))?.trim();
  if (known === undefined) return false;
  try {
    const parts = [
      `${readlinkSync(places.app)}\n${readlinkSync(places.envdRuntime)}\n`,
      readFileSync(join(places.config, `${program}.env`)),
      readFileSync(join(places.config, `${program}.own.env`)),
    ];
    const hash = createHash("sha256");
    for (const part of parts) hash.update(part);
    return !known.startsWith(hash.digest("hex"));
  } catch {
    return false;
  }
}

/** The parts of a debug bundle. Each is a file of text; one that fails leaves its reason in its place. */

import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { VERSION } from "../../shared/version.ts";
import { lastWords } from "../base/commands.ts";
import { ask } from "../base/http.ts";
import { type Program, textOf } from "../base/instance.ts";
import type { Machine } from "../base/this-machine.ts";
import { examine } from "../doctor/doctor.ts";
import { metricsTokenOf } from "../evidence/programs/metrics.ts";
import { urlOf } from "../evidence/programs/programs.ts";

export interface Part {
  /** Name of the file. */
  readonly name: string;
  readonly limitMs: number;
  readonly make: () => Promise<string>;
}

const SHORT_MS = 20_000;
const LONG_MS = 90_000;
/** Of each log: its end. */
const LOG_BYTES = 16 * 1024 * 1024;

export function partsOf(machine: Machine, sinceMs: number): readonly Part[] {
  const { instance } = machine;
  const { config, log } = instance.places;
  const short = (name: string, make: () => Promise<string>): Part => ({ name, limitMs: SHORT_MS, make });
  const says = (name: string, ...command: readonly string[]) => short(name, () => outputOf(machine, command));
  return [
    { name: "doctor.json", limitMs: LONG_MS, make: async () => JSON.stringify(await examine(machine), null, 2) },
    short("version.txt", () => Promise.resolve(`svc ${VERSION}\n`)),
    ...instance.programs.flatMap((program) => [
      short(`${program}/readyz.txt`, () => page(machine, program, "/readyz?verbose")),
      short(`${program}/metrics.txt`, () => page(machine, program, "/metrics")),
      short(`${program}/settings.env`, () => Promise.resolve(settingsOf(machine, program))),
      { name: `${program}/log.txt`, limitMs: LONG_MS, make: () => logOf(machine, program, sinceMs) },
    ]),
    ...(instance.programs.includes("orchestrator")
      ? [
          "/version",
          "/nodes",
          "/admin/storage",
          "/admin/edges",
          "/admin/rotation",
          "/admin/sandboxes/running-counts",
        ].map((path) => short(`state${path.replaceAll("/", "-")}.json`, () => page(machine, "orchestrator", path)))
      : []),
    short("role.txt", () => Promise.resolve(`${textOf(join(config, "role")) ?? ""}\n`)),
    short("up.log", () => endOf(join(log, "up.log"))),
    says("machine/uname.txt", "uname", "-a"),
    says("machine/os-release.txt", "cat", "/etc/os-release"),
    says("machine/disks.txt", "df", "-PTh"),
    says("machine/inodes.txt", "df", "-Pi"),
    says("machine/mounts.txt", "cat", "/proc/mounts"),
    says("machine/memory.txt", "cat", "/proc/meminfo"),
    says("machine/links.txt", "ip", "-br", "link"),
    says("machine/routes.txt", "ip", "-4", "route", "show", "table", "all"),
    says("machine/listening.txt", "ss", "-Hltnp"),
    says("machine/firewall.txt", "nft", "list", "table", "inet", instance.network),
    // Names of programs alone: command lines of others may hold secrets.
    says("machine/processes.txt", "ps", "-eo", "pid,ppid,user,stat,etime,rss,comm"),
    short("machine/docker.json", async () => {
      const { text } = await ask({ url: "http://docker/info", socketPath: machine.places.dockerSocket });
      return text;
    }),
    says(
      "machine/containers.txt",
      "docker",
      "ps",
      "--all",
      "--no-trunc",
      "--filter",
      "label=svc.node",
      "--format",
      "{{.ID}} {{.Names}} {{.State}} {{.Status}}",
    ),
  ];
}

async function outputOf({ run }: Machine, [program = "", ...args]: readonly string[]): Promise<string> {
  const said = await run(program, args, { limitMs: SHORT_MS - 1_000 });
  if (said.status !== 0) throw new Error(lastWords(said));
  return said.stdout;
}

async function page({ instance }: Machine, program: Program, path: string): Promise<string> {
  const token = textOf(join(instance.places.config, "admin-token"))?.split(/\s/, 1)[0] ?? "";
  const metrics = { authorization: `Bearer ${metricsTokenOf(instance, program)}` };
  const headers = path === "/metrics" ? metrics : { "x-admin-token": token };
  const { status, text } = await ask({ url: `${urlOf(instance, program)}${path}`, headers, limitMs: SHORT_MS - 1_000 });
  if (status !== 200 && !path.startsWith("/readyz"))
    throw new Error(`${path} answered ${status}: ${text.slice(0, 300)}`);
  return text;
}

function settingsOf({ instance }: Machine, program: Program): string {
  const lines = Object.entries(instance.environment(program)).map(([name, value]) => `${name}=${value}`);
  return `${lines.toSorted().join("\n")}\n`;
}

async function logOf(machine: Machine, program: Program, sinceMs: number): Promise<string> {
  const { name, places } = machine.instance;
  const file = join(places.log, `${program}.log`);
  if (!existsSync(file)) {
    const unit = `svc-${program}${name === "" ? "" : `-${name}`}.service`;
    const since = `@${Math.floor(sinceMs / 1_000)}`;
    return outputOf(machine, ["journalctl", "--unit", unit, "--since", since, "--no-pager", "--output", "cat"]);
  }
  const before = existsSync(`${file}.1`) ? await endOf(`${file}.1`) : "";
  return within(`${before}${await endOf(file)}`, sinceMs);
}

/** The lines from this time on. A line without a time belongs to the one before. Pure. */
export function within(text: string, sinceMs: number): string {
  let isIn = false;
  const lines = text.split("\n").filter((line) => {
    const time = /^\{.{0,80}?"time":"([^"]{20,32})"/.exec(line)?.[1];
    if (time !== undefined) isIn = Date.parse(time) >= sinceMs;
    return isIn;
  });
  return lines.length === 0 ? "" : `${lines.join("\n").trimEnd()}\n`;
}

async function endOf(path: string): Promise<string> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const from = Math.max(0, size - LOG_BYTES);
    const buffer = Buffer.alloc(size - from);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, from);
    const text = buffer.toString("utf8", 0, bytesRead);
    // The first line of a cut text is a part of one.
    return from === 0 ? text : text.slice(text.indexOf("\n") + 1);
  } finally {
    await file.close();
  }
}

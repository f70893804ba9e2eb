/** Looks for a text in everything that a platform writes or shows, in clear, in base64 and in hexadecimal digits. */

import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { agentPage } from "./agent-pages.ts";
import { containersOf } from "./host-objects.ts";
import { api, asAdmin, checkout, type Platform } from "./platform.ts";
import { disksOfNode, run, settingOf } from "./programs.ts";

const execute = promisify(execFile);
/** Characters at either end of a text in base64 that depend on what is beside it. */
const EDGE = 4;

/** The text in each form that a search by bytes finds, wherever it begins in an encoded whole. */
function formsOf(text: string): readonly string[] {
  const shifted = ["", "x", "xx"].map((before) =>
    Buffer.from(before + text)
      .toString("base64")
      .slice(EDGE, -EDGE),
  );
  const hex = Buffer.from(text).toString("hex");
  return [
    text,
    ...shifted,
    ...shifted.map((form) => form.replaceAll("+", "-").replaceAll("/", "_")),
    hex,
    hex.toUpperCase(),
  ];
}

/** One text that was found, and where. */
interface Finding {
  readonly text: string;
  readonly place: string;
}

/** The texts of which some form is in `shown`. */
function findingsIn(place: string, shown: string, texts: readonly string[]): readonly Finding[] {
  return texts.filter((text) => formsOf(text).some((form) => shown.includes(form))).map((text) => ({ text, place }));
}

/** Searches files, and directories with all that is in them, byte by byte. */
async function inPaths(texts: readonly string[], paths: readonly string[]): Promise<readonly Finding[]> {
  const directory = await mkdtemp(join(tmpdir(), "hunt-"));
  const patterns = join(directory, "patterns");
  const forms = new Map(texts.flatMap((text) => formsOf(text).map((form) => [form, text] as const)));
  try {
    // The texts are in no command line, where the search itself would find them.
    await writeFile(patterns, [...forms.keys()].join("\n"), { mode: 0o600 });
    // Bytes of zero end lines: in a disk image a line could otherwise be as long as the disk.
    const options = ["-raoFHZzs", "-D", "skip", "--exclude-dir=disks", "-f", patterns, "--"];
    const environment = { LC_ALL: "C", PATH: process.env["PATH"] ?? "" };
    const { stdout } = await execute("grep", [...options, ...paths], { maxBuffer: 64 << 20, env: environment }).catch(
      (error: { code?: number; stdout?: string }) => {
        // 1: nothing was found. 2: a file ended meanwhile; what was found elsewhere is in the output.
        if (error.code === 1 || error.code === 2) return { stdout: error.stdout ?? "" };
        throw error;
      },
    );
    const found = new Map<string, Finding>();
    const parts = stdout.split("\0");
    for (let i = 0; i + 1 < parts.length; i += 2) {
      const [place = "", form = ""] = [parts[i], parts[i + 1]];
      found.set(`${place} ${forms.get(form)}`, { text: forms.get(form) ?? form, place });
    }
    return [...found.values()];
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** Databases with their logs of changes, settings, logs of the programs, stored memory, core files; one sandbox's disk. */
export async function inFiles(
  platform: Platform,
  sandboxId: string,
  texts: readonly string[],
): Promise<readonly Finding[]> {
  const { state, run: runDirectory, etc } = platform.paths;
  const suffix = platform.instance === "" ? "" : `-${platform.instance}`;
  const directories = [state, runDirectory, etc, `/var/log/svc${suffix}`, `${checkout}.svc${suffix}`];
  const cores = (await readdir("/")).filter((name) => /^core(\.|$)/.test(name)).map((name) => `/${name}`);
  return inPaths(texts, [...directories, ...cores, ...(await disksOf(platform, sandboxId))]);
}

async function disksOf(platform: Platform, sandboxId: string): Promise<readonly string[]> {
  const disks = disksOfNode(platform);
  const ids = (await containersOf(platform)).filter(({ name }) => name === `svc-${sandboxId}`).map(({ id }) => id);
  const names = (await readdir(disks)).filter((name) => ids.some((id) => name === `${id}.img`));
  if (names.length === 0) throw new Error(`the sandbox ${sandboxId} has no disk`);
  return names.map((name) => join(disks, name));
}

/** Command lines and environments of all processes of the machine, those inside sandboxes included. */
export async function inProcesses(texts: readonly string[]): Promise<readonly Finding[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const paths = pids.flatMap((pid) => [`/proc/${pid}/environ`, `/proc/${pid}/cmdline`]);
  const shown = await Promise.all(
    paths.map(async (path) => [path, await readFile(path, "latin1").catch(() => "")] as const),
  );
  return shown.flatMap(([path, text]) => findingsIn(path, text, texts));
}

/** The platform's and Docker's answers: metrics of both programs, reads, events, the network log, `docker inspect`. */
export async function inAnswers(
  platform: Platform,
  sandboxId: string,
  texts: readonly string[],
): Promise<readonly Finding[]> {
  const authorization = `Bearer ${settingOf(platform, "agent", "SVC_ORCHESTRATOR_TOKEN")}`;
  const read = async (path: string) => [path, (await api(platform, "GET", path)).text] as const;
  const shown = await Promise.all([
    ...["", "/network/log", "/metrics"].map((path) => read(`/sandboxes/${sandboxId}${path}`)),
    ...[`/v2/sandboxes/${sandboxId}/logs`, `/events/sandboxes/${sandboxId}`, "/secrets", "/audit?limit=100"].map(read),
    api(platform, "GET", "/metrics", asAdmin(platform)).then(
      ({ text }) => ["the orchestrator's metrics", text] as const,
    ),
    agentPage(platform, "/metrics", { authorization }).then(({ text }) => ["the agent's metrics", text] as const),
    inspected(platform).then((text) => ["docker inspect", text] as const),
  ]);
  return shown.flatMap(([place, text]) => findingsIn(place, text, texts));
}

async function inspected(platform: Platform): Promise<string> {
  const ids = (await containersOf(platform)).map(({ id }) => id);
  // A container may be gone by now: then there is nothing to see.
  return ids.length === 0 ? "" : run("docker", ["inspect", ...ids]).catch(() => "");
}

/**
 * A runtime of the test's own in the Docker daemon's settings, for as long as the test needs it. SIGHUP makes Docker read
 * them again.
 */

import { execFile } from "node:child_process";
import { readFile, rename, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { checkout } from "../platform/platform.ts";
import { until } from "../runner/until.ts";

const run = promisify(execFile);
/** Names with this prefix are the test's: each run removes what a killed run has left. */
const PREFIX = "svc-escape";

interface Settings {
  readonly runtimes?: Readonly<Record<string, { readonly path: string }>>;
}

/** Resolves to the runtime's name and a function that removes the runtime. */
export async function addRuntime(path: string): Promise<{ readonly name: string; remove(): Promise<void> }> {
  const name = `${PREFIX}-${process.pid}`;
  await setRuntimes({ [name]: { path } });
  return { name, remove: () => setRuntimes({}) };
}

async function setRuntimes(ours: Readonly<Record<string, { readonly path: string }>>): Promise<void> {
  const file = await ask("engine_config_file");
  const settings = JSON.parse(await readFile(file, "utf8")) as Settings;
  const others = Object.entries(settings.runtimes ?? {}).filter(([name]) => !name.startsWith(PREFIX));
  const runtimes = { ...Object.fromEntries(others), ...ours };
  await writeFile(`${file}.new`, `${JSON.stringify({ ...settings, runtimes }, null, 2)}\n`);
  await rename(`${file}.new`, file);
  process.kill(Number(await ask("engine_pid")), "SIGHUP");
  const wanted = Object.keys(ours).join();
  const taken = async () => {
    const { stdout } = await run("docker", ["info", "--format", "{{json .Runtimes}}"]);
    const names = Object.keys(JSON.parse(stdout) as object);
    return names.filter((one) => one.startsWith(PREFIX)).join() === wanted;
  };
  await until(taken, { what: `Docker's runtimes with "${wanted}"`, timeoutMs: 120_000 });
}

/** Asks the set-up scripts for a fact about the Docker daemon. */
async function ask(word: string): Promise<string> {
  const { stdout } = await run("bash", ["-c", `. ${checkout}scripts/lib/engine.sh; ${word}`]);
  return stdout.trim();
}

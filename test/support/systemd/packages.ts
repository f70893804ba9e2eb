/** Two Debian packages for an upgrade, and what an archive for machines without a network has beside them. */

import { execFile } from "node:child_process";
import { appendFile, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { checkout } from "../platform/platform.ts";

const execute = promisify(execFile);
const SCRIPTS = `${checkout}scripts`;
const LIMIT_MS = 1_200_000;
const PROGRAMS = ["orchestrator.js", "agent.js", "edge.js"];

/** Names of packages in `/root/packages` of a system. */
export interface Packages {
  readonly before: string;
  readonly now: string;
}

/**
 * Puts a package into a system, of this checkout or SVC_TEST_PACKAGE, and one before it: that of SVC_TEST_PACKAGE_BEFORE, or the programs
 * of this checkout with another last line and a lower version, so that an upgrade installs and starts all of them.
 */
export async function putPackages(root: string): Promise<Packages> {
  const to = join(root, "root/packages");
  await mkdir(to, { recursive: true });
  const { SVC_TEST_PACKAGE: given, SVC_TEST_PACKAGE_BEFORE: givenBefore } = process.env;
  const now = given === undefined ? await make(to, []) : await put(given, to);
  if (givenBefore !== undefined) return { before: await put(givenBefore, to), now };
  const work = await mkdtemp(join(tmpdir(), "svc-before-"));
  try {
    const dist = join(work, "dist");
    await execute("cp", ["-R", `${checkout}dist`, dist]);
    for (const name of PROGRAMS) await appendFile(join(dist, name), "\n// The version before.\n");
    return { before: await make(to, ["--version", "0.0.1", "--dist", dist]), now };
  } finally {
    await rm(work, { recursive: true });
  }
}

async function put(file: string, to: string): Promise<string> {
  await execute("cp", [file, to]);
  return basename(file);
}

async function make(to: string, options: readonly string[]): Promise<string> {
  const args = ["--to", to, "--compression", "none", ...options];
  const { stdout } = await execute(`${SCRIPTS}/package`, args, { timeout: LIMIT_MS, maxBuffer: 64 << 20 });
  return basename(stdout.trim());
}

/**
 * Puts the base template and CRIU of this machine where `up` looks for them, as the archive for machines without a network does: both
 * are made of packages of Debian and npm, for minutes, and are none of the package's.
 */
export async function putWhatUpWouldFetch(root: string): Promise<void> {
  const { stdout } = await execute(`${SCRIPTS}/host/engine/base-image`, ["--archive", "/var/lib/svc"]);
  const archive = stdout.trim();
  const criu = (await readdir("/opt/svc/criu", { withFileTypes: true }).catch(() => [])).filter((one) =>
    one.isDirectory(),
  );
  const cache = join(root, dirname(archive));
  const programs = join(root, "opt/svc/criu");
  await mkdir(cache, { recursive: true });
  await mkdir(programs, { recursive: true });
  try {
    await execute("cp", [archive, cache]);
    for (const { name } of criu) await execute("cp", ["-R", `/opt/svc/criu/${name}`, programs]);
  } catch (cause) {
    throw new Error("this machine has no base template of this version: ./scripts/up makes it", { cause });
  }
}

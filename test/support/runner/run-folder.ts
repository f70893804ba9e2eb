/**
 * `globalSetup` of a run's own folder for temporary files, which its workers have as TMPDIR and which goes with the run. A worker
 * is ended by a signal, so what its own code would remove at its exit stays.
 */

import { chmodSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Names of caches of compiled code, which the next run uses again. */
const CACHES = [`tsx-${process.getuid?.() ?? 0}`, "node-compile-cache"];

const shared = globalThis as {
  testRunFolder?: { readonly path: string; readonly before: string | undefined; users: number };
};

/** Projects of one run share it. */
export function setup(): void {
  if (shared.testRunFolder !== undefined) {
    shared.testRunFolder.users++;
    return;
  }
  const common = realpathSync(tmpdir());
  // Short: the path of a UNIX socket has a hundred characters.
  const path = mkdtempSync(join(common, "svc-"));
  // As /tmp: some programs of tests run as another user.
  chmodSync(path, 0o1777);
  for (const name of CACHES) {
    // After a boot of the machine there is none, and behind a link to nothing programs cannot make it.
    mkdirSync(join(common, name), { recursive: true });
    symlinkSync(join(common, name), join(path, name));
  }
  shared.testRunFolder = { path, before: process.env["TMPDIR"], users: 1 };
  process.env["TMPDIR"] = path;
}

export function teardown(): void {
  const folder = shared.testRunFolder;
  if (folder === undefined) return;
  folder.users--;
  if (folder.users > 0) return;
  delete shared.testRunFolder;
  if (folder.before === undefined) delete process.env["TMPDIR"];
  else process.env["TMPDIR"] = folder.before;
  const mounts = mountedBelow(folder.path, readFileSync("/proc/self/mountinfo", "utf8"));
  // What is mounted there belongs to somebody else.
  if (mounts.length > 0) {
    console.warn(`${folder.path} stays: a test left ${mounts.join(", ")} mounted`);
    return;
  }
  try {
    // A program that a test left may write there until it sees its end.
    rmSync(folder.path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  } catch (error) {
    console.warn(`${folder.path} stays: ${String(error)}`);
  }
}

/** @param mountinfo of proc(5), in which the fifth field is the place of a mount */
export function mountedBelow(path: string, mountinfo: string): string[] {
  return mountinfo
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((place) => place === path || place.startsWith(`${path}/`));
}

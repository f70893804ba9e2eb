/** The directory of the set-up's lock: it is root's own, and nobody can put something else in its place. */

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const library = join(import.meta.dirname, "../../../scripts/lib");

function place() {
  const home = mkdtempSync(join(tmpdir(), "svc-lock-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  return { home, lock: join(home, "svc-setup") };
}

/** A script that takes the lock, then runs the command. */
const script = (lock: string, command: string) =>
  `set -euo pipefail; . ${library}/environment.sh; . ${library}/root.sh; LOCK_DIR=${lock}; ${command}`;
const run = (lock: string, command: string) => spawnSync("bash", ["-pc", script(lock, command)], { encoding: "utf8" });

test("the lock is a new directory that only its owner may pass, and no file in it", () => {
  const { lock } = place();
  expect(run(lock, "umask 000; one_at_a_time; echo locked")).toMatchObject({
    status: 0,
    stdout: "locked\n",
    stderr: "",
  });
  expect(statSync(lock).mode & 0o777).toBe(0o700);
  expect(readdirSync(lock)).toEqual([]);
});

test("a lock directory that others may write is closed to them", () => {
  const { lock } = place();
  mkdirSync(lock);
  spawnSync("chmod", ["0777", lock]);
  expect(run(lock, "one_at_a_time").status).toBe(0);
  expect(statSync(lock).mode & 0o777).toBe(0o700);
});

test.each([
  ["a file", "file"],
  ["a directory", "directory"],
  ["nothing", "gone"],
])("a link to %s in the place of the lock is refused, and its target stays as it was", (_what, target) => {
  const { home, lock } = place();
  writeFileSync(join(home, "file"), "precious", { mode: 0o644 });
  mkdirSync(join(home, "directory"), { mode: 0o755 });
  symlinkSync(join(home, target), lock);
  const { status, stderr } = run(lock, "one_at_a_time; echo locked");
  expect(status).toBe(1);
  expect(stderr).toContain(`${lock} is not a directory of root, but: symbolic link`);
  expect(stderr).toContain("remove it, then run this again");
  expect(readFileSync(join(home, "file"), "utf8")).toBe("precious");
  expect(statSync(join(home, "directory")).mode & 0o777).toBe(0o755);
  expect(readdirSync(home).toSorted()).toEqual(["directory", "file", "svc-setup"]);
});

test("a lock directory that another user has made is refused", () => {
  const { lock } = place();
  mkdirSync(lock, { mode: 0o755 });
  const stat = 'stat() { if [ "$2" = %u ]; then echo 4242; else command stat "$@"; fi; }';
  const { status, stderr } = run(lock, `${stat}; one_at_a_time; echo locked`);
  expect(status).toBe(1);
  expect(stderr).toContain(`${lock} is not a directory of root, but: directory of`);
  expect(statSync(lock).mode & 0o777).toBe(0o755);
});

test("a second set-up says that it waits, and goes on when the first one has ended", async () => {
  const { lock } = place();
  const first = spawn("bash", ["-pc", script(lock, "one_at_a_time; echo locked; read -r _")]);
  onTestFinished(() => void first.kill());
  await once(first.stdout, "data");
  const second = spawn("bash", ["-pc", script(lock, "one_at_a_time; echo locked")]);
  onTestFinished(() => void second.kill());
  const [said] = (await once(second.stdout, "data")) as [Buffer];
  expect(said.toString()).toBe("waiting for another set-up on this machine to finish\n");
  first.stdin.end("\n");
  const [then] = (await once(second.stdout, "data")) as [Buffer];
  expect(then.toString()).toBe("locked\n");
});

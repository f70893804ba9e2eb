/** Logs of programs that the scripts start: only root reads them, and they never exceed their limit. */

import { type ChildProcess, spawn } from "node:child_process";
import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { run } from "../../support/platform/programs.ts";

const scripts = new URL("../../../scripts/", import.meta.url).pathname;
const SOON = { timeout: 30_000 };

async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "svc-bound-log-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

function started(...command: readonly [string, ...string[]]): ChildProcess {
  const [program, ...parameters] = command;
  const child = spawn(program, parameters, { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

test("a log that grows restarts in the same file, its former end is kept once, and the watch ends with the process", async () => {
  const file = join(await directory(), "log");
  const writer = started("sleep", "600");
  await writeFile(file, `${"old\n".repeat(1_000)}last\n`);
  const { ino } = await stat(file);
  const watch = started(`${scripts}host/engine/bound-log`, file, "100", String(writer.pid), "0.05");
  await expect.poll(async () => (await stat(file)).size, SOON).toBe(0);
  const kept = await readFile(`${file}.1`, "utf8");
  expect([kept.length, kept.endsWith("old\nlast\n")]).toEqual([100, true]);
  expect((await stat(`${file}.1`)).mode & 0o777).toBe(0o600);
  await appendFile(file, "little");
  await appendFile(file, "x".repeat(500));
  await expect.poll(() => readFile(`${file}.1`, "utf8"), SOON).toBe("x".repeat(100));
  expect((await stat(file)).ino).toBe(ino);
  writer.kill("SIGKILL");
  await expect.poll(() => watch.exitCode, SOON).toBe(0);
});

test("the log of Docker is readable by root only, also one that was made readable by all users", async () => {
  const path = await directory();
  await writeFile(join(path, "old"), "kept", { mode: 0o644 });
  await run("bash", ["-c", `. ${scripts}lib/engine.sh; private_log ${path}/old; private_log ${path}/new`]);
  for (const name of ["old", "new"]) expect((await stat(join(path, name))).mode & 0o777).toBe(0o600);
  expect(await readFile(join(path, "old"), "utf8")).toBe("kept");
});

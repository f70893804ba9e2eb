/**
 * `svc-confine`, in which CRIU restores a sandbox, makes a device while runc writes the rules for devices of the cgroup that it
 * runs in. The first of these rules forbids all devices.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";

const CONFINE = /\/opt\/svc\/criu\/confine-\w+/.exec(readFileSync("/opt/svc/bin/criu", "utf8"))?.[0] ?? "";

test("a restore waits while the rules of its cgroup forbid the device that it makes", async () => {
  const directory = await mkdtemp(join(tmpdir(), "svc-devices-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const cgroup = `/sys/fs/cgroup/devices/svc-test-${process.pid}`;
  await mkdir(cgroup);
  onTestFinished(() => rmdir(cgroup));
  await writeFile(join(cgroup, "devices.deny"), "a");

  const command = `echo $$ > ${cgroup}/cgroup.procs; exec ${CONFINE} /usr/bin/true --images-dir ${directory} --work-dir ${directory}`;
  const confined = spawn("/bin/sh", ["-c", command], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  confined.stderr.on("data", (part: Buffer) => (said += part.toString()));
  const ended = once(confined, "exit");
  // Long enough for a program that does not wait to have failed.
  const early = await Promise.race([ended, delay(300, "waits")]);
  expect(early, said).toBe("waits");
  await writeFile(join(cgroup, "devices.allow"), "a");
  expect(await ended, said).toEqual([0, null]);
});

/** What a program tells the service manager, with a `systemd-notify` of the test's own that writes down what it was given. */

import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { createLog } from "../../../shared/program/log.ts";
import { serviceManager } from "../../../shared/program/service/service-manager.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-notify-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
});

const FAKE = `#!/bin/sh
printf '%s|' "$NOTIFY_SOCKET" "$@" >>"$0.sent"
printf '\\n' >>"$0.sent"
`;

async function world(given: Record<string, string> = {}) {
  const program = join(folder, "systemd-notify");
  await writeFile(program, FAKE);
  await chmod(program, 0o755);
  const environment: Record<string, string | undefined> = {
    PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}`,
    NOTIFY_SOCKET: "/run/test/notify",
    ...given,
  };
  const warnings: string[] = [];
  const log = createLog({ component: "test", destination: { write: (line) => warnings.push(line) } });
  const sent = async () => (await readFile(`${program}.sent`, "utf8").catch(() => "")).split("\n").filter(Boolean);
  return { environment, warnings, sent, manager: serviceManager(environment, log) };
}

test("it says that the program is ready, feeds the watchdog, and says at last that it stops", async () => {
  const { manager, sent } = await world({ WATCHDOG_USEC: "600000", WATCHDOG_PID: String(process.pid) });
  await expect.poll(sent).toContain("/run/test/notify|STATUS=starting|WATCHDOG=1|");
  manager.ready(() => "3 sandboxes,\n pool 1/1");
  await expect.poll(sent).toContain("/run/test/notify|READY=1|STATUS=3 sandboxes, pool 1/1|WATCHDOG=1|");
  await expect.poll(sent).toContain("/run/test/notify|STATUS=3 sandboxes, pool 1/1|WATCHDOG=1|");
  manager.stopping();
  await expect.poll(sent).toContain("/run/test/notify|STOPPING=1|STATUS=stopping|");
});

test("children of the program do not inherit the way to the service manager, nor where its keys are", async () => {
  const { environment } = await world({
    WATCHDOG_USEC: "30000000",
    WATCHDOG_PID: "1",
    CREDENTIALS_DIRECTORY: "/run/c",
  });
  expect(Object.keys(environment)).toEqual(["PATH"]);
});

test("without a service manager nothing is sent", async () => {
  const { manager, sent } = await world({ NOTIFY_SOCKET: "" });
  manager.ready(() => "running");
  manager.stopping();
  expect(await sent()).toEqual([]);
});

test("a systemd-notify that fails is a warning once, and no end of the program", async () => {
  const { manager, warnings } = await world({ WATCHDOG_USEC: "300000", PATH: "/nowhere" });
  manager.ready(() => "running");
  await expect.poll(() => warnings.length).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect(warnings).toHaveLength(1);
});

test("that the program is ready is said again until it was said once", async () => {
  const { manager, sent, environment } = await world({ WATCHDOG_USEC: "300000" });
  const path = environment["PATH"];
  environment["PATH"] = "/nowhere";
  manager.ready(() => "running");
  await new Promise((resolve) => setTimeout(resolve, 250));
  environment["PATH"] = path;
  await expect.poll(sent).toContain("/run/test/notify|READY=1|STATUS=running|WATCHDOG=1|");
  await expect.poll(sent).toContain("/run/test/notify|STATUS=running|WATCHDOG=1|");
});

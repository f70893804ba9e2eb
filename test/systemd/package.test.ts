/**
 * The Debian package under a systemd that runs: a Debian of its own on this machine (test/support/systemd/system), in which apt installs
 * the package, and systemd starts, watches, stops and starts again its programs while sandboxes count. The tests follow each other.
 * SVC_TEST_DEBIAN is the release, SVC_TEST_KEPT_SANDBOXES how many sandboxes run meanwhile (half as many are paused), and
 * SVC_TEST_PACKAGE_BEFORE the package that SVC_TEST_PACKAGE, or else the one of this checkout, takes the place of.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import {
  type Counting,
  createCounting,
  expectCounting,
  expectCountingOnTheMachine,
} from "../support/systemd/counting.ts";
import { type Packages, putPackages, putWhatUpWouldFetch } from "../support/systemd/packages.ts";
import { openStreams, summaryOf } from "../support/systemd/streams.ts";
import { insist, NOT_NESTED, newSystem, property, removeSystem, SYSTEM_ROOT, type } from "../support/systemd/system.ts";

const RELEASE = process.env["SVC_TEST_DEBIAN"] ?? "bookworm";
const RUNNING = Number(process.env["SVC_TEST_KEPT_SANDBOXES"] ?? 4);
const PAUSED = Math.ceil(RUNNING / 2);
/** So many of the running sandboxes have streams of three kinds during the upgrade. */
const STREAMED = 6;
/** What docs/operating/package.md promises of an upgrade: how long no stream can be opened. */
const STREAMS_CUT_MS = 30_000;
const PROGRAMS = ["orchestrator", "agent"] as const;
const UNITS = PROGRAMS.map((program) => `svc-${program}.service`);
const [ORCHESTRATOR = "", AGENT = ""] = UNITS;
/** WatchdogSec of the units, and as long again: a busy machine starts a program late. */
const WATCHDOG = { timeout: 180_000, interval: 2_000 };
const SOON = { timeout: 120_000, interval: 1_000 };
const APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y";

let packages: Packages;
let running: readonly Counting[] = [];
let paused: readonly Counting[] = [];

beforeAll(async () => {
  console.log(NOT_NESTED);
  await newSystem(RELEASE);
  packages = await putPackages(SYSTEM_ROOT);
  await putWhatUpWouldFetch(SYSTEM_ROOT);
  console.log(await insist("systemctl --version | head -n 1; systemctl is-system-running || true"));
});
afterAll(async () => {
  await removeSystem();
});

/** Types a command, and shows what was said. */
async function shown(command: string): Promise<string> {
  const said = await insist(command);
  console.log(`# ${command}\n${said}`);
  return said;
}

const states = (units: readonly string[]) => insist(`systemctl is-active ${units.join(" ")} || true`);
const pids = () => Promise.all(UNITS.map((unit) => property(unit, "MainPID")));
const untilReady = () => expect.poll(async () => (await type("svc status")).status, SOON).toBe(0);

test("apt installs the package on a bare Debian, starts nothing, and says what comes next", async () => {
  await insist("apt-get -q update");
  const said = await shown(`${APT} install --no-install-recommends /root/packages/${packages.before}`);
  expect(said).toContain("svc: 'svc-platform up' sets a platform up on this machine");
  expect(await insist("systemctl list-units --all --no-legend 'svc-*'")).toBe("");
  expect(await states(["docker.service"])).toBe("active");
  const { said: about } = await type("svc doctor");
  console.log(about);
  expect(about).toContain("svc-platform up");
});

test("up makes units that systemd starts at each boot, and shows a first sandbox", async () => {
  const said = await shown("svc-platform up");
  expect(said).toContain("First sandbox:");
  expect(await states(UNITS)).toBe("active\nactive");
  expect(await insist(`systemctl is-enabled ${UNITS.join(" ")}`)).toBe("enabled\nenabled");
  for (const unit of UNITS) expect.soft(await property(unit, "NRestarts")).toBe("0");
  await expect.poll(() => property(ORCHESTRATOR, "StatusText"), SOON).toMatch(/^\d+ sandboxes?, .*database ok/);
  console.log(await insist(`systemctl show --property Id,StatusText,ActiveState ${UNITS.join(" ")}`));
  expect(await insist("systemctl --failed --no-legend --plain")).toBe("");
});

test("doctor finds nothing wrong with the platform", async () => {
  const { status, said } = await type("svc doctor");
  console.log(said);
  expect(status, said).toBe(0);
  const found = [...said.matchAll(/\(([a-z-]+\.[a-z-]+)\)$/gm)].map(([, id]) => id);
  // The distribution's own: its Docker's settings, its runc.
  expect(found.filter((id) => id !== "docker.live-restore" && id !== "runc.holes")).toEqual([]);
});

test("settings reach the programs as credentials, which no other user reads, and are in no environment", async () => {
  const [orchestrator] = await pids();
  const key = await insist("sed -n 's/^SVC_NODE_KEY=//p' /etc/svc/orchestrator.env");
  expect(key).not.toBe("");
  for (const pid of await pids()) expect(await insist(`tr '\\0' '\\n' </proc/${pid}/environ`)).not.toContain(key);
  const place = `/run/credentials/${ORCHESTRATOR}/settings`;
  expect(await insist(`nsenter --target ${orchestrator} --mount cat ${place}`)).toContain(key);
  expect(
    (await type(`setpriv --reuid nobody --clear-groups cat ${place} /etc/svc/orchestrator.env`)).said,
  ).not.toContain(key);
});

test(`sandboxes of the command count: ${RUNNING} run, ${PAUSED} are paused`, async () => {
  const all = await createCounting(RUNNING + PAUSED);
  running = all.slice(0, RUNNING);
  paused = all.slice(RUNNING);
  await insist(`svc sandbox pause ${paused.map(({ id }) => id).join(" ")}`);
  console.log(await insist("svc sandbox list"));
  await expectCounting(running);
});

test("a program whose event loop stands still is ended and started again by the watchdog, and sandboxes go on", async () => {
  const before = await pids();
  const at = Date.now();
  await insist(`kill -STOP ${before.join(" ")}`);
  await expectCountingOnTheMachine(running);
  for (const [index, unit] of UNITS.entries()) {
    await expect.poll(() => property(unit, "NRestarts"), WATCHDOG).toBe("1");
    await expect.poll(() => states([unit]), SOON).toBe("active");
    console.log(`${unit}: started again within ${Math.round((Date.now() - at) / 1000)} s`);
    expect((await pids())[index]).not.toBe(before[index]);
    expect(await insist(`journalctl --no-pager -u ${unit}`)).toContain("Watchdog timeout");
  }
  await untilReady();
  await expectCounting(running);
});

test("a program that ends at each start is given up after ten, systemd and doctor say so, and up takes it back", async () => {
  // On a slow machine ten starts take longer than the unit's minute.
  const patience = `/etc/systemd/system/${ORCHESTRATOR}.d`;
  await insist(`mkdir -p ${patience} && printf '[Unit]\\nStartLimitIntervalSec=600\\n' >${patience}/slow.conf`);
  await insist("systemctl daemon-reload && echo SVC_API_PORT=no-port >>/etc/svc/orchestrator.own.env");
  await type(`systemctl restart ${ORCHESTRATOR}`);
  await expect.poll(() => states([ORCHESTRATOR]), SOON).toBe("failed");
  const { said } = await type(`systemctl status --no-pager ${ORCHESTRATOR}`);
  console.log(said);
  expect(await insist(`journalctl --no-pager -u ${ORCHESTRATOR}`)).toContain("Start request repeated too quickly");
  const doctor = await type("svc doctor");
  console.log(doctor.said);
  expect(doctor.status).toBe(1);
  expect(doctor.said).toMatch(/orchestrator/);
  await expectCountingOnTheMachine(running);
  await insist(`rm -r ${patience} && systemctl daemon-reload`);
  await shown("svc-platform up");
  expect(await states(UNITS)).toBe("active\nactive");
  await expectCounting(running);
});

test("systemctl stop leaves sandboxes running, and start finds them", async () => {
  await insist(`systemctl stop ${UNITS.join(" ")}`);
  expect(await states(UNITS)).toBe("inactive\ninactive");
  await expectCountingOnTheMachine(running);
  await insist(`systemctl start ${UNITS.join(" ")}`);
  await untilReady();
  await expectCounting(running);
});

test("a reload of systemd, of its program, and of Docker touches neither programs nor sandboxes; the units have no reload", async () => {
  const before = await pids();
  await insist("systemctl daemon-reload && systemctl daemon-reexec && systemctl reload docker.service");
  expect((await type(`systemctl reload ${AGENT}`)).said).toContain("Job type reload is not applicable");
  expect(await pids()).toEqual(before);
  await expectCounting(running);
});

test("an upgrade by apt starts the programs of the new version, leaves Docker alone, loses no sandbox, and cuts streams for some seconds", async () => {
  const [before, docker] = [await pids(), await property("docker.service", "MainPID")];
  const streams = await openStreams(running.slice(0, STREAMED).map(({ id }) => id));
  onTestFinished(() => streams.close());
  const at = Date.now();
  const said = await shown(`${APT} install --no-install-recommends /root/packages/${packages.now}`);
  console.log(`upgrade: ${Math.round((Date.now() - at) / 1000)} s`);
  expect(said).toContain("svc: brings svc to this version; its sandboxes go on");
  const report = await streams.report();
  console.log(summaryOf(report));
  expect(report.cuts.filter(({ ms }) => ms > STREAMS_CUT_MS)).toEqual([]);
  // The log that apt keeps of it has neither the API key nor the link that logs in.
  expect(await insist("cat /var/log/apt/term.log")).not.toMatch(/e2b_[0-9a-f]|#code=/);
  const now = await pids();
  for (const [index, pid] of before.entries()) expect(now[index]).not.toBe(pid);
  expect(await states(UNITS)).toBe("active\nactive");
  expect(await property("docker.service", "MainPID")).toBe(docker);
  await expectCounting(running);
  await insist(`svc sandbox resume ${paused.map(({ id }) => id).join(" ")} --timeout 6h`);
  await expectCounting(paused);
  await insist(`svc sandbox pause ${paused.map(({ id }) => id).join(" ")}`);
});

test("removal stops the programs, sandboxes go on without them, and the next install has all of it", async () => {
  await shown(`${APT} remove svc`);
  expect(await states(UNITS)).toBe("inactive\ninactive");
  expect(await insist("systemctl list-unit-files --no-legend 'svc-*' || true")).toBe("");
  await expectCountingOnTheMachine(running);
  await shown(`${APT} install --no-install-recommends /root/packages/${packages.now}`);
  expect(await states(UNITS)).toBe("active\nactive");
  await expectCounting(running);
  await insist(`svc sandbox resume ${paused.map(({ id }) => id).join(" ")} --timeout 6h`);
  await expectCounting(paused);
});

test("a purge says what it removes, and then removes all of it", async () => {
  const said = await shown(`${APT} purge svc`);
  expect(said).toContain("svc: removes all sandboxes, snapshots, templates, volumes, settings and keys");
  expect(await insist("docker ps --all --quiet")).toBe("");
  expect(await insist("docker image ls --quiet")).toBe("");
  for (const place of ["etc/svc", "etc/default/svc", "opt/svc", "var/lib/svc", "var/log/svc", "usr/lib/svc"])
    expect.soft(existsSync(join(SYSTEM_ROOT, place)), place).toBe(false);
  expect(await insist("systemctl list-units --all --no-legend --plain 'svc-*'")).toBe("");
  expect(await insist("ls /sys/class/net | grep '^svc' || true; nft list tables | grep svc || true")).toBe("");
});

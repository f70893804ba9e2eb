/** The known problems of a machine: each is found by its evidence, and a usual machine has none. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { planNetwork } from "../../../agent/network/addresses.ts";
import { smallDisk } from "../../support/store/small-disk.ts";

interface Problem {
  readonly id: string;
  readonly stops: boolean;
  readonly problem: string;
  readonly evidence: string;
  readonly wayOut: string;
}
const directory = join(import.meta.dirname, "../../../scripts/host/machine");
const { CHECKS, problems, within } = (await import(join(import.meta.dirname, "../../../machine/known/checks.mjs"))) as {
  readonly CHECKS: readonly { readonly id: string; readonly when: string }[];
  readonly problems: (when: string, facts: unknown) => readonly Problem[];
  readonly within: (range: string, other: string) => boolean;
};
const { isOwnLink } = (await import(join(directory, "facts.mjs"))) as {
  readonly isOwnLink: (networkName: string, link: string) => boolean;
};

const GIB = 2 ** 30;
const usual = {
  checkout: "/home/ölaf/my code/svc-1.0",
  programs: ["orchestrator", "agent"],
  release: "6.1.0-37-amd64",
  mounts: [{ place: "/sys/fs/cgroup", options: ["rw"] }],
  freeBytes: 40 * GIB,
  memoryBytes: 8 * GIB,
  readOnly: [] as string[],
  noexec: [] as string[],
  docker: {
    SecurityOptions: ["name=apparmor", "name=seccomp,profile=builtin"],
    DockerRootDir: "/var/lib/docker",
  } as object,
  dockerVersion: { Components: [{ Name: "Engine" }] } as object,
  subnet: "10.213.0.0/16",
  routes: [
    { range: "172.17.0.0/16", words: "172.17.0.0/16 of the link docker0" },
    { range: "192.168.1.0/24", words: "192.168.1.0/24 of the link eth0" },
  ],
  damaged: [] as string[],
  full: [] as string[],
};
const route = (range: string) => ({ routes: [...usual.routes, { range, words: `${range} of the link br-1` }] });

const PLANTED: readonly (readonly [id: string, facts: Partial<typeof usual>, evidence: string])[] = [
  ["checkout-path", { checkout: "/home/o'brien/svc" }, "'"],
  ["checkout-path", { checkout: '/srv/"new"/svc' }, "new"],
  ["checkout-path", { checkout: "/srv/$HOME/svc" }, "$"],
  ["old-kernel", { release: "5.4.0-216-generic" }, "Linux 5.4.0-216-generic, and 5.9"],
  ["old-kernel", { release: "4.19.0" }, "Linux 4.19.0"],
  ["cgroups", { mounts: [] }, "/sys/fs/cgroup"],
  ["disk-space", { freeBytes: GIB }, "1024 MiB"],
  ["memory", { memoryBytes: GIB }, "1024 MiB"],
  ["directory-read-only", { readOnly: ["/opt"] }, "/opt"],
  ["programs-noexec", { noexec: ["/opt/svc"] }, "/opt/svc"],
  [
    "docker-userns-remap",
    { docker: { SecurityOptions: ["name=seccomp,profile=default", "name=userns"] } },
    "name=userns",
  ],
  ["docker-rootless", { docker: { SecurityOptions: ["name=rootless"] } }, "rootless"],
  ["docker-is-another-program", { dockerVersion: { Components: [{ Name: "Podman Engine" }] } }, "Podman"],
  ["docker-is-elsewhere", { docker: { OperatingSystem: "Docker Desktop" } }, "Docker Desktop"],
  [
    "docker-is-elsewhere",
    { docker: { OperatingSystem: "Alpine/Rancher Desktop WSL Distribution" } },
    "Rancher Desktop",
  ],
  ["docker-is-a-snap", { docker: { DockerRootDir: "/var/snap/docker/common/var-lib-docker" } }, "/var/snap"],
  ["network-taken", route("10.213.7.0/24"), "br-1"],
  ["network-taken", route("10.213.0.0/16"), "br-1"],
  ["network-taken", route("10.213.9.1"), "br-1"],
  ["network-inside-another", route("10.0.0.0/8"), "10.0.0.0/8"],
  ["database-damaged", { damaged: ["/x/svc.db: file is not a database"] }, "/x/svc.db"],
  ["database-disk-full", { full: ["/x/svc.db: 0 bytes are free there"] }, "/x/svc.db: 0 bytes"],
];

test("every check has a planted problem", () => {
  expect([...new Set(PLANTED.map(([id]) => id))].toSorted()).toEqual(CHECKS.map(({ id }) => id).toSorted());
});

test.each(["machine", "docker", "start"])("a usual machine has no problem at the moment '%s'", (when) => {
  expect(problems(when, usual)).toEqual([]);
});

test.each(PLANTED)("%s is found, with evidence and a way out", (id, facts, evidence) => {
  const when = CHECKS.find((check) => check.id === id)?.when ?? "";
  const found = problems(when, { ...usual, ...facts });
  expect(found.map((problem) => problem.id)).toEqual([id]);
  expect(found[0]?.evidence).toContain(evidence);
  for (const text of [found[0]?.problem, found[0]?.wayOut]) expect(text).toMatch(/^[^\n]{10,}$/);
});

test("a kernel is new enough from Linux 5.9 on, and any is where no sandboxes run", () => {
  for (const release of ["5.9.0-rc1", "5.10.0-35-amd64", "6.1.0", "10.0", "unknown"]) {
    expect(problems("machine", { ...usual, release }), release).toEqual([]);
  }
  expect(problems("machine", { ...usual, release: "4.19.0", programs: ["orchestrator"] })).toEqual([]);
});

test("the default route of a VPN, in two halves, is no network", () => {
  for (const range of ["0.0.0.0/1", "128.0.0.0/1"])
    expect(problems("docker", { ...usual, ...route(range) })).toEqual([]);
});

test("a problem that stops comes before a warning", () => {
  const routes = [...route("10.0.0.0/8").routes, ...route("10.213.7.0/24").routes];
  expect(problems("docker", { ...usual, routes }).map(({ stops }) => stops)).toEqual([true, false]);
});

test("a range is within itself and wider ones, and not within its neighbour", () => {
  expect(within("10.213.0.0/16", "10.213.0.0/16")).toBe(true);
  expect(within("10.213.255.255", "10.213.0.0/16")).toBe(true);
  expect(within("10.214.0.0/24", "10.213.0.0/16")).toBe(false);
  expect(within("10.0.0.0/8", "10.213.0.0/16")).toBe(false);
  expect(within("1.2.3.4", "0.0.0.0/0")).toBe(true);
});

test("every link that an agent makes is its own, and a link of another network is not", () => {
  const plan = planNetwork("svctest", "10.243.0.0/16");
  for (const link of [plan.gatewayLink, plan.probe.link, plan.slot(2).link, plan.slot(plan.lastSlot).link]) {
    expect(isOwnLink("svctest", link), link).toBe(true);
  }
  for (const link of ["svc0", "svc-2", "svcother-probe", "svctest-probe2", "br-svctest0"]) {
    expect(isOwnLink("svctest", link), link).toBe(false);
  }
});

test("a damaged database is named, and a whole or missing one is no problem", () => {
  const home = mkdtempSync(join(tmpdir(), "svc-damaged-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const whole = join(home, "whole.db");
  new Database(whole).exec("create table t (x); insert into t values (1)").close();
  writeFileSync(join(home, "broken.db"), "no database at all, though long enough to look like one".repeat(100));
  const look = (...files: string[]) =>
    spawnSync(process.execPath, [join(directory, "look.mjs"), "start", ...files], { encoding: "utf8" });
  expect(look(whole, join(home, "none.db"))).toMatchObject({ status: 0, stdout: "" });
  const { status, stdout } = look(whole, join(home, "broken.db"));
  expect(status).toBe(3);
  expect(stdout).toContain(`${home}/broken.db: file is not a database`);
  expect(stdout).toContain("docs/operating/backup.md");
});

test.skipIf(process.getuid?.() !== 0)("a full disk below a database is named (only as root)", () => {
  const disk = smallDisk(1);
  onTestFinished(() => disk.remove());
  const file = join(disk.place, "svc.db");
  writeFileSync(file, "");
  const look = () => spawnSync(process.execPath, [join(directory, "look.mjs"), "start", file], { encoding: "utf8" });
  expect(look()).toMatchObject({ status: 0, stdout: "" });
  disk.fill();
  const { status, stdout } = look();
  expect(status).toBe(3);
  expect(stdout).toContain(`${file}: 0 bytes are free there`);
});

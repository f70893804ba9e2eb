/** The checks of `svc doctor` over planted faults: each is found, named first, and nothing else fails with it. */

import { describe, expect, test } from "vitest";
import { ALL_CHECKS } from "../../../machine/checks/all.ts";
import { SECTIONS } from "../../../machine/checks/check.ts";
import { judge } from "../../../machine/checks/judge.ts";
import { confirmed, PREFLIGHT_CHECKS } from "../../../machine/doctor/doctor.ts";
import { isFiltered } from "../../../machine/evidence/criu.ts";
import { type Evidence, NO_UNIT } from "../../../machine/evidence/evidence.ts";
import { type Change, counted, disk, objects } from "../../support/machine/changes.ts";
import { agentDown, dockerStopped, FAULTS } from "../../support/machine/faults.ts";
import { healthy } from "../../support/machine/healthy.ts";
import { WARNINGS } from "../../support/machine/warnings.ts";

const results = (change: Change) => {
  const evidence = healthy();
  return judge(ALL_CHECKS, { ...evidence, ...change(evidence) });
};

test("a healthy machine has no failure and no warning, and everything can be seen", () => {
  expect(judge(ALL_CHECKS, healthy()).filter(({ status }) => status !== "ok")).toEqual([]);
});

describe("a planted fault is named first, and it alone", () => {
  test.each(FAULTS)("%s: %s", (_fault, check, change, evidence) => {
    const wrong = results(change).filter(({ status }) => status === "failed" || status === "warning");
    expect(wrong.map(({ id }) => id)).toEqual(wrong.map(() => check));
    expect(wrong[0]).toMatchObject({ status: "failed", evidence: expect.stringMatching(evidence) as string });
    expect(wrong[0]?.fix).toMatch(/\w{3}/);
  });

  test.each(WARNINGS)("%s: the warning %s", (_fault, check, change) => {
    const wrong = results(change).filter(({ status }) => status === "failed" || status === "warning");
    expect(wrong.map(({ id, status }) => `${status} ${id}`)).toEqual([`warning ${check}`]);
  });

  test("every check has a fault above", () => {
    const planted = new Set([...FAULTS, ...WARNINGS].map(([, check]) => check));
    const ofUp =
      /^(kernel\.(cgroups|directory-read-only)|docker\.(userns-remap|rootless|is-another-program|is-elsewhere|is-a-snap|network-inside-another))$/;
    expect(ALL_CHECKS.map(({ id }) => id).filter((id) => !planted.has(id) && !ofUp.test(id))).toEqual([]);
  });

  test("a failure that follows from another comes after it", () => {
    const both = results((evidence) => ({ ...dockerStopped(evidence), ...agentDown(evidence) }));
    expect(both.filter(({ status }) => status === "failed").map(({ id }) => id)).toEqual([
      "docker.silent",
      "programs.stopped",
    ]);
  });
});

test("a program whose unit nobody has made needs up, and no start", () => {
  const unit = { name: "svc-agent.service", state: NO_UNIT, restarts: 0, runningSeconds: undefined, isStale: false };
  const stopped = results(({ programs }) => ({
    programs: programs?.map((program) => ({ ...program, pid: undefined, silent: undefined, unit })),
  })).filter(({ id }) => id === "programs.stopped");
  expect(stopped.map(({ fix }) => fix)).toEqual(stopped.map(() => "./scripts/up makes and starts it"));
  expect(stopped[0]?.evidence).toContain("unit svc-agent.service is not there");
});

test("what could not be seen is no failure", () => {
  const { at, instance } = healthy();
  const blind = Object.fromEntries(Object.keys(healthy()).map((key) => [key, undefined]));
  const found = judge(ALL_CHECKS, { ...blind, at, instance } as Evidence);
  expect(found.filter(({ status }) => status === "failed" || status === "warning")).toEqual([]);
  expect(found.filter(({ status }) => status === "unknown").length).toBeGreaterThan(30);
});

test("no disk is called left over where the agent does not say which came from other nodes", () => {
  const left = objects({ disks: ["e".repeat(64), "f".repeat(64)] });
  const silent = results((evidence) => ({ ...left(evidence), metrics: [] }));
  expect(silent.filter(({ status }) => status === "failed")).toEqual([]);
});

test("a machine with an orchestrator alone needs neither Docker nor CRIU", () => {
  const evidence = healthy();
  const instance = { ...evidence.instance, programs: ["orchestrator" as const] };
  const without = { docker: undefined, criu: undefined, firewall: undefined, objects: undefined, egress: undefined };
  const found = judge(ALL_CHECKS, { ...evidence, ...without, instance });
  expect(found.filter(({ status }) => status === "failed")).toEqual([]);
});

test("what only one of two looks found is not reported", () => {
  const broken = results(objects({ links: ["svc-2", "svc-3", "svc-4", "svc-77"] }));
  const other = results(objects({ links: ["svc-2", "svc-3", "svc-4", "svc-78"] }));
  const wrong = (first: typeof broken, second: typeof broken) =>
    confirmed(first, second).filter(({ status }) => status !== "ok");
  expect(wrong(broken, broken).map(({ evidence }) => evidence)).toEqual([expect.stringContaining("svc-77")]);
  expect(wrong(broken, other)).toEqual([]);
  expect(
    wrong(
      broken,
      results(() => ({})),
    ),
  ).toEqual([]);
});

test("warm containers that are being added are not missed, and few slow creates say nothing", () => {
  const short = counted("svc_pool_size", 2, { state: "ready" });
  const before = { ...healthy(), ...counted("svc_pool_size", 1, { state: "ready" })(healthy()) };
  const found = results((evidence) => ({ ...short(evidence), metricsBefore: before.metrics }));
  expect(found.filter(({ status }) => status !== "ok")).toEqual([]);
  const few = results((evidence) => {
    const fewer = counted("svc_sandbox_create_duration_seconds_bucket", 90, { le: "+Inf" })(evidence);
    return counted("svc_sandbox_create_duration_seconds_bucket", 0, { le: "1" })({ ...evidence, ...fewer });
  });
  expect(few.filter(({ status }) => status !== "ok")).toEqual([]);
});

test("the preflight of an upgrade fails for what stops it in the middle, and for nothing else", () => {
  const statusOf = (change: Change) => {
    const evidence = healthy();
    return judge(PREFLIGHT_CHECKS, { ...evidence, ...change(evidence) }).filter(({ status }) => status !== "ok");
  };
  expect(PREFLIGHT_CHECKS).toHaveLength(9);
  expect(statusOf(() => ({}))).toEqual([]);
  expect(statusOf(dockerStopped).map(({ id }) => id)).toEqual(["docker.silent"]);
  expect(statusOf(disk({ freeBytes: 0 })).map(({ id }) => id)).toEqual(["disks.full"]);
  expect(statusOf(() => ({ criu: undefined, nodes: undefined, egress: undefined }))).toEqual([]);
  expect(statusOf(counted("svc_webhook_queue", 5_000))).toEqual([]);
});

test("every check has a section, an id of its own and a way out", () => {
  expect(new Set(ALL_CHECKS.map(({ id }) => id)).size).toBe(ALL_CHECKS.length);
  const used = new Set(ALL_CHECKS.map(({ section }) => section));
  expect(SECTIONS.filter((section) => !used.has(section))).toEqual([]);
  for (const { id, problem, fix } of ALL_CHECKS) {
    expect(id).toMatch(/^[a-z-]+\.[a-z-]+$/);
    for (const text of [problem, fix]) expect(text).toMatch(/^[^\n]{8,}$/);
  }
});

test("CRIU that fails under a filter of system calls, as in a service of systemd, is not said to be broken", () => {
  const criu = { path: "/opt/svc/bin/criu", version: "4.1", problem: "dump: Operation not permitted" };
  const statusOf = (seen: Evidence["criu"]) =>
    judge(ALL_CHECKS, { ...healthy(), criu: seen }).find(({ id }) => id === "criu.dump")?.status;
  expect(statusOf(criu)).toBe("failed");
  expect(statusOf({ ...criu, filtered: true })).toBe("unknown");
  expect(isFiltered("Name:\tnode\nSeccomp:\t2\nSeccomp_filters:\t3\n")).toBe(true);
  expect(isFiltered("Name:\tnode\nSeccomp:\t0\nSeccomp_filters:\t0\n")).toBe(false);
});

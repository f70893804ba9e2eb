/** The report of the doctor, as the agent gets it from the doctor's program. */

import { expect, test } from "vitest";
import { hostDoctor } from "../../../../agent/api/doctor.ts";
import type { RunCommand } from "../../../../agent/host/command.ts";
import { createLog } from "../../../../shared/program/log.ts";

const log = createLog({ component: "test", level: "silent" });
const REPORT = { ok: true, at: "2026-11-29T17:00:00.000Z", instance: "test", checks: [] };

function doctorThat(run: RunCommand, networkName = "svctest") {
  return hostDoctor({ networkName, nodeId: "n1" }, { log, run });
}
const says = (text: string) => doctorThat(() => Promise.resolve(text));

test("the doctor's program gets the name of the platform and of the node, a limit, and none of the agent's environment", async () => {
  const calls: Parameters<RunCommand>[] = [];
  const doctor = (networkName: string) =>
    doctorThat((...call) => {
      calls.push(call);
      return Promise.resolve(JSON.stringify({ report: REPORT }));
    }, networkName);
  expect(await doctor("svctest").examine()).toEqual(REPORT);
  await doctor("svc").examine();
  expect(calls.map(([program]) => program)).toEqual([process.execPath, process.execPath]);
  expect(calls.map(([, args]) => args.slice(-2))).toEqual([
    ["test", "n1"],
    ["", "n1"],
  ]);
  expect(calls[0]?.[1].at(-3)).toMatch(/machine\/main\.ts$/);
  expect(calls[0]?.[2]).toEqual({ timeoutMs: 65_000, path: expect.stringContaining("/usr/sbin") as string });
});

test("calls at the same time share one run, and a later one looks again", async () => {
  let runs = 0;
  const doctor = doctorThat(async () => {
    runs += 1;
    await new Promise((resolve) => void setTimeout(resolve, 20));
    return JSON.stringify({ report: REPORT });
  });
  await Promise.all([doctor.examine(), doctor.examine(), doctor.examine()]);
  expect(runs).toBe(1);
  await doctor.examine();
  expect(runs).toBe(2);
});

test("a run that fails is not kept: the next call looks again", async () => {
  const answers = ["", JSON.stringify({ report: REPORT })];
  const doctor = doctorThat(() => Promise.resolve(answers.shift() ?? ""));
  await expect(doctor.examine()).rejects.toMatchObject({ code: "unavailable" });
  expect(await doctor.examine()).toEqual(REPORT);
});

test.each([
  [
    "says why it has none",
    JSON.stringify({ problem: "/etc/svc has no settings" }),
    /doctor: \/etc\/svc has no settings$/,
  ],
  ["prints no JSON", "out of memory", /it ended without one; the agent's log has its words$/],
  ["prints null", "null", /not of the form that this version knows$/],
  ["prints another form", JSON.stringify({ report: { ok: "yes" } }), /not of the form that this version knows$/],
  ["prints a text without end", JSON.stringify({ problem: "x".repeat(1e6) }), /^.{0,1100}$/],
])("a program that %s is the reason in the answer", async (_what, text, message) => {
  await expect(says(text).examine()).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringMatching(message) as string,
  });
});

test("a program that is not there, or takes too long, is no fault of the agent, and its command is not in the answer", async () => {
  const doctor = doctorThat(() => Promise.reject(new Error(`${process.execPath} doctor.js ended with SIGKILL`)));
  await expect(doctor.examine()).rejects.toMatchObject({
    code: "unavailable",
    message: expect.not.stringContaining("SIGKILL") as string,
  });
});

test("an agent whose network ./scripts/up did not name starts no program", async () => {
  const doctor = doctorThat(() => Promise.reject(new Error("started")), "mine");
  await expect(doctor.examine()).rejects.toThrow("./scripts/up made no platform with the network 'mine'");
});

/** The report that the console shows of a node that runs (`SVC_INSTANCE=NAME ./scripts/up`): that of `svc doctor`, without a secret. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readInstance } from "../../machine/base/instance.ts";
import { thisMachine } from "../../machine/base/this-machine.ts";
import { knownValues } from "../../machine/bundle/known-values.ts";
import { examine } from "../../machine/doctor/doctor.ts";
import { urlOf } from "../../machine/evidence/programs/programs.ts";
import type { MachineReport } from "../../shared/program/finding.ts";

const instance = readInstance(process.env["SVC_INSTANCE"] ?? "");

test("an operator gets of the node what its own doctor finds, and no value that the machine keeps", async () => {
  const token = readFileSync(join(instance.places.config, "admin-token"), "utf8").split(/\s/, 1)[0] ?? "";
  const node = instance.setting("agent", "SVC_NODE_ID") ?? "";
  const url = `${urlOf(instance, "orchestrator")}/nodes/${node}/doctor`;
  const answer = await fetch(url, { headers: { "x-admin-token": token } });
  const text = await answer.text();
  expect(answer.status, text).toBe(200);
  for (const value of knownValues(instance)) expect(text.includes(value)).toBe(false);
  const wrong = (checks: readonly { readonly id: string; readonly status: string }[]) =>
    new Set(checks.filter(({ status }) => status === "failed" || status === "warning").map(({ id }) => id));
  const { checks } = JSON.parse(text) as MachineReport;
  expect(wrong(checks)).toEqual(wrong((await examine(thisMachine(instance))).checks));
});

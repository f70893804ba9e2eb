/** Looks at a machine, judges what it saw, and looks again before it calls something broken that may be under way. */

import type { Machine } from "../base/this-machine.ts";
import { ALL_CHECKS } from "../checks/all.ts";
import type { Result } from "../checks/check.ts";
import { judge } from "../checks/judge.ts";
import { gather, gatherAgain, gatherForUpgrade, untilAgain } from "../evidence/gather.ts";
import { applyFix } from "./fixes.ts";

export interface Report {
  /** Nothing has failed; warnings do not count. */
  readonly ok: boolean;
  readonly at: string;
  readonly instance: string;
  readonly checks: readonly Result[];
}

export interface Mended {
  readonly id: string;
  readonly evidence: string;
  /** Why it could not be mended. */
  readonly problem: string | undefined;
}

export async function examine(machine: Machine): Promise<Report> {
  const first = await gather(machine);
  const found = judge(ALL_CHECKS, first);
  if (!found.some(isWrong)) return reportOf(found, machine);
  const second = judge(ALL_CHECKS, await gatherAgain(machine, first));
  return reportOf(confirmed(found, second), machine);
}

/** Failures that would leave an upgrade in the middle: files cannot be written, or a stopped program does not start again. */
const BEFORE_UPGRADE: ReadonlySet<string> = new Set([
  "kernel.directory-read-only",
  "kernel.programs-noexec",
  "disks.full",
  "disks.inodes",
  "disks.read-only",
  "files.missing",
  "clock.back",
  "docker.silent",
  "database.broken",
]);
export const PREFLIGHT_CHECKS = ALL_CHECKS.filter(({ id }) => BEFORE_UPGRADE.has(id));

/** Only what an upgrade needs, before anything is replaced. */
export async function preflight(machine: Machine): Promise<Report> {
  const found = judge(PREFLIGHT_CHECKS, await gatherForUpgrade(machine));
  if (!found.some(isWrong)) return reportOf(found, machine);
  // A Docker daemon that is busy at one moment refuses no upgrade.
  await untilAgain();
  return reportOf(confirmed(found, judge(PREFLIGHT_CHECKS, await gatherForUpgrade(machine))), machine);
}

function isWrong({ status }: Result): boolean {
  return status === "failed" || status === "warning";
}

/** What both looks found. What only the second found may be under way, too. Pure. */
export function confirmed(first: readonly Result[], second: readonly Result[]): readonly Result[] {
  const before = new Set(first.filter(({ status }) => status !== "ok").map(keyOf));
  return second.map((result) =>
    result.status === "ok" || result.status === "unknown" || before.has(keyOf(result))
      ? result
      : { ...result, status: "ok", evidence: "" },
  );
}

/** Of a thing that comes and goes, each one counts. The words of other evidence may change from look to look. */
function keyOf({ id, section, evidence }: Result): string {
  return section === "invariants" || section === "orphans" ? `${id} ${evidence}` : id;
}

function reportOf(checks: readonly Result[], { instance, now }: Machine): Report {
  const ok = checks.every(({ status }) => status !== "failed");
  return { ok, at: new Date(now()).toISOString(), instance: instance.name, checks };
}

/** Applies each fix that loses nothing and disturbs no sandbox. */
export async function mend({ checks }: Report, machine: Pick<Machine, "run">): Promise<readonly Mended[]> {
  const done: Mended[] = [];
  for (const { id, evidence, mends } of checks) {
    if (mends === undefined) continue;
    done.push({ id, evidence, problem: await applyFix(mends, machine) });
  }
  return done;
}

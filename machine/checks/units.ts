/** Checks of the units of systemd, where the machine has it. Pure. */

import type { Evidence, UnitSeen } from "../evidence/evidence.ts";
import type { Check } from "./check.ts";

/** A program that systemd has started again so often, and that runs for no longer than that, ends again and again. */
const RESTARTS = 3;
const RECENT_SECONDS = 3_600;

export const unitChecks: readonly Check[] = [
  {
    id: "units.stale",
    section: "units",
    severity: "warns",
    problem: "a unit of the platform, or a drop-in of it, has changed since systemd has read it",
    evidence: (evidence) => units(evidence, ({ isStale }) => isStale)?.map(({ name }) => name),
    fix: "systemctl daemon-reload; what has changed counts from the next start of the program",
  },
  {
    id: "units.restarts",
    section: "units",
    severity: "warns",
    problem: "a program of the platform ends again and again, and systemd starts it each time",
    evidence: (evidence) =>
      units(
        evidence,
        // One that does not run now is the failure of another check.
        ({ restarts, runningSeconds }) => restarts >= RESTARTS && (runningSeconds ?? RECENT_SECONDS) < RECENT_SECONDS,
      )?.map(({ name, restarts }) => `${name}: ${restarts} times, the last one within this hour`),
    fix: "./scripts/service log PROGRAM has its last lines before each end; sandboxes go on meanwhile",
  },
];

function units({ programs }: Evidence, isWrong: (unit: UnitSeen) => boolean): readonly UnitSeen[] | undefined {
  return programs?.flatMap(({ unit }) => (unit !== undefined && isWrong(unit) ? [unit] : []));
}

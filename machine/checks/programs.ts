/** Checks of the programs on this machine and of their database. Pure. */

import { type Evidence, NO_UNIT, type ProgramSeen } from "../evidence/evidence.ts";
import type { Check } from "./check.ts";
import { findingsOf } from "./findings.ts";

/** With fewer descriptors some hundred sandboxes are many. */
const FEW_FILES = 4_096;
/** Capabilities without which an agent cannot do its work, with their numbers (linux/capability.h). Its unit denies none of them. */
export const AGENT_CAPABILITIES = {
  CAP_NET_ADMIN: 12,
  CAP_SYS_PTRACE: 19,
  CAP_SYS_ADMIN: 21,
  CAP_SYS_CHROOT: 18,
  CAP_KILL: 5,
  // A restore sets the clocks of a sandbox's processes.
  CAP_SYS_TIME: 25,
  // These, SYS_CHROOT and KILL are a sandbox's own, and CRIU cannot give its processes more than the agent has.
  CAP_CHOWN: 0,
  CAP_DAC_OVERRIDE: 1,
  CAP_FOWNER: 3,
  CAP_FSETID: 4,
  CAP_SETGID: 6,
  CAP_SETUID: 7,
  CAP_SETPCAP: 8,
  CAP_NET_BIND_SERVICE: 10,
  CAP_AUDIT_WRITE: 29,
  CAP_SETFCAP: 31,
} as const;

/** What these checks of readiness say, other checks say before them, with a way out. */
const SAID_ELSEWHERE: readonly { readonly check: string; readonly by: (evidence: Evidence) => boolean }[] = [
  { check: "engine", by: ({ docker }) => docker?.problem !== undefined },
  { check: "database", by: ({ database }) => database?.problem !== undefined },
  { check: "orchestrator", by: (evidence) => isDown(evidence, "orchestrator") },
  { check: "nodes", by: (evidence) => isDown(evidence, "agent") },
];

export const programChecks: readonly Check[] = [
  {
    id: "database.broken",
    section: "database",
    severity: "fails",
    problem: "the database of the platform cannot be used",
    evidence: ({ database, instance }) => {
      if (!instance.programs.includes("orchestrator")) return [];
      return database === undefined
        ? undefined
        : database.problem === undefined
          ? []
          : [`${database.kind} ${database.path}: ${database.problem}`];
    },
    fix: "docs/operating/database.md: mend the disk or the server; restore a backup (`svc restore`) only if the file is damaged. Delete nothing",
  },
  {
    id: "programs.stopped",
    section: "programs",
    severity: "fails",
    problem: "a program of the platform does not run",
    evidence: ({ programs }) =>
      programs
        ?.filter(({ pid }) => pid === undefined)
        .map(({ program, supervised, unit }) => ({
          evidence: `${program}: ${unit === undefined ? (supervised ? "its supervisor runs, and starts it again and again" : "nothing supervises it") : `unit ${unit.name} is ${unit.state}`}`,
          fix:
            unit?.state === NO_UNIT
              ? "./scripts/up makes and starts it"
              : `./scripts/service start ${program}; ./scripts/service log ${program} says why it ended`,
        })),
    fix: "start it",
  },
  {
    id: "programs.silent",
    section: "programs",
    severity: "fails",
    problem: "a program of the platform runs and does not answer",
    evidence: ({ programs }) =>
      programs
        ?.filter(({ pid, silent }) => pid !== undefined && silent !== undefined)
        .map(({ program, silent = "" }) => ({
          evidence: `${program}: ${silent}`,
          fix: `./scripts/service log ${program}; ./scripts/service restart ${program} leaves sandboxes running`,
        })),
    fix: "restart it",
  },
  {
    id: "programs.not-ready",
    section: "programs",
    severity: "fails",
    problem: "a program of the platform is not ready",
    evidence: (evidence) =>
      evidence.programs?.flatMap(({ program, failing }) =>
        Object.entries(failing)
          .filter(([name]) => !SAID_ELSEWHERE.some(({ check, by }) => check === name && by(evidence)))
          .map(([name, text]) => ({ evidence: `${program}: ${name}: ${text}` })),
      ),
    fix: "docs/operating.md, 'It runs, and something fails'",
  },
  {
    id: "programs.unsupervised",
    section: "programs",
    severity: "warns",
    problem: "a program of the platform runs, and nothing starts it again when it ends",
    evidence: ({ programs }) =>
      programs?.filter(({ pid, supervised }) => pid !== undefined && !supervised).map(({ program }) => program),
    fix: "./scripts/service restart PROGRAM",
  },
  {
    id: "programs.files",
    section: "programs",
    severity: "warns",
    problem: "a program of the platform may open few files, so clients get few connections",
    evidence: ({ programs }) =>
      programs
        ?.filter(({ files }) => files !== undefined && files < FEW_FILES)
        .map(({ program, files }) => `${program}: ${files}`),
    fix: "raise `ulimit -Hn` of the user who runs up, or use the units of systemd",
  },
  {
    id: "programs.capabilities",
    section: "programs",
    severity: "fails",
    problem: "the agent lacks rights of root that it needs",
    evidence: ({ programs }) =>
      programs?.flatMap(({ program, capabilities }) => {
        if (program !== "agent" || capabilities === undefined) return [];
        const missing = Object.entries(AGENT_CAPABILITIES).filter(
          ([, bit]) => ((capabilities >> BigInt(bit)) & 1n) === 0n,
        );
        return missing.length === 0 ? [] : [missing.map(([name]) => name).join(", ")];
      }),
    fix: "start it as root with the unit of scripts/systemd; a container for it needs these capabilities",
  },
  {
    id: "blobs.store",
    section: "blob store",
    severity: "fails",
    problem: "a node cannot use the blob store",
    evidence: findingsOf(["blobs."]),
    fix: "docs/operating/snapshots.md, 'Beyond a node'",
  },
  {
    id: "upgrade.restart",
    section: "upgrade",
    severity: "warns",
    problem: "a program runs with an earlier version or earlier settings than those installed",
    evidence: ({ programs }) => programs?.flatMap((program) => pending(program)),
    fix: "./scripts/up restarts it; sandboxes go on",
  },
];

function pending({ program, version, installed, settingsChanged }: ProgramSeen): readonly string[] {
  if (version !== undefined && installed !== undefined && version !== installed) {
    return [`${program}: ${version} runs, ${installed} is installed`];
  }
  return settingsChanged ? [`${program}: its settings have changed since its start`] : [];
}

function isDown({ programs }: Evidence, name: ProgramSeen["program"]): boolean {
  return (
    programs?.some(({ program, pid, silent }) => program === name && (pid === undefined || silent !== undefined)) ??
    false
  );
}

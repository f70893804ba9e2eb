/**
 * The doctor's report about this node's machine. The checks are those of `svc doctor`; they run in a program of their own (`machine/`),
 * so that none of them can block or end the agent, and the agent knows none of them.
 */

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { AppError } from "../../shared/http/errors.ts";
import { check } from "../../shared/http/validate.ts";
import { MachineReport, REPORT_TEXT } from "../../shared/program/finding.ts";
import type { Log } from "../../shared/program/log.ts";
import type { AgentConfig } from "../config.ts";
import { type RunCommand, runCommand } from "../host/command.ts";

export interface Doctor {
  /** Calls at the same time share one run. @throws {AppError} unavailable: there is no report */
  examine(): Promise<MachineReport>;
}

/** The program ends by itself after 60 s. */
const LIMIT_MS = 65_000;
/** The checks run programs of the machine. Nothing else of the agent's environment is for them. */
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const reports = check(MachineReport, "report");

/** What the program prints: one of the two. */
interface Said {
  readonly report?: unknown;
  readonly problem?: unknown;
}

interface DoctorDeps {
  readonly log: Log;
  /** For tests. */
  readonly run?: RunCommand;
}

export function hostDoctor(
  { networkName, nodeId }: Pick<AgentConfig, "networkName" | "nodeId">,
  { log, run = runCommand }: DoctorDeps,
): Doctor {
  let underWay: Promise<MachineReport> | undefined;

  async function look(): Promise<MachineReport> {
    // scripts/lib/instance.sh names the network after the platform.
    const named = /^svc([a-z][a-z0-9]{0,4})?$/.exec(networkName);
    if (named === null) throw without(`./scripts/up made no platform with the network '${networkName}'`);
    const command = [...program(), named[1] ?? "", nodeId];
    const said = await run(process.execPath, command, { timeoutMs: LIMIT_MS, path: PATH })
      .then((text) => (JSON.parse(text) ?? {}) as Said)
      .catch((error: unknown): Said => {
        log.warn({ err: error }, "the doctor ended without a report");
        return { problem: "it ended without one; the agent's log has its words" };
      });
    if (reports.passes(said.report)) return said.report as MachineReport;
    throw without(typeof said.problem === "string" ? said.problem : "it is not of the form that this version knows");
  }

  const without = (why: string) =>
    new AppError("unavailable", `node '${nodeId}' has no report of the doctor: ${why.slice(0, REPORT_TEXT)}`);

  return {
    examine() {
      underWay ??= look().finally(() => {
        underWay = undefined;
      });
      return underWay;
    },
  };
}

/** As it was built, or of this checkout. */
function program(): string[] {
  const here = fileURLToPath(import.meta.url);
  const file = here.endsWith(".ts") ? join(dirname(here), "../../machine/main.ts") : join(dirname(here), "doctor.js");
  return [...process.execArgv, file];
}

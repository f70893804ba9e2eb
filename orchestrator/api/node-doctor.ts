/** The handler of the doctor's report of a node. The node looks at its machine when it is asked, and nothing is kept here. */

import type { nodeDoctorApi } from "../../shared/api/nodes/doctor.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError, isError } from "../../shared/http/errors.ts";
import { check } from "../../shared/http/validate.ts";
import { MachineReport, REPORT_TEXT } from "../../shared/program/finding.ts";
import type { Nodes } from "../nodes/nodes.ts";

interface DoctorDeps {
  readonly nodes: Pick<Nodes, "get" | "agent">;
}

/** The agent gives its doctor 65 s, and ten more where it cannot be killed. */
const LIMIT_MS = 80_000;
/** Longest message of a node: what its agent says of a doctor without a report is shorter. */
const LONGEST_MESSAGE = 2 * REPORT_TEXT;
/** Longest time of a report: the format allows any number of digits. */
const LONGEST_TIME = 64;

const reports = check(MachineReport, "report");

/** A node is trusted with less than the page that shows its words. */
export function createDoctorHandlers({ nodes }: DoctorDeps): Handlers<typeof nodeDoctorApi> {
  return {
    async examineNode({ params: { nodeID } }, { signal }) {
      const node = nodes.get(nodeID);
      if (node === undefined) throw new AppError("not_found", `node '${nodeID}' not found`);
      const report = await nodes
        .agent(nodeID)
        .examine({}, { timeoutMs: LIMIT_MS, signal })
        .catch((error: unknown) => {
          if (!isError(error, "not_found")) throw withoutReport(error);
          const message = `the agent of node '${nodeID}' is of version ${node.facts.version}, which has no report for the console`;
          throw new AppError("unavailable", message, { cause: error });
        });
      if (!reports.passes(report) || report.at.length > LONGEST_TIME)
        throw new AppError("unavailable", `node '${nodeID}' answered with no report`);
      return known(report);
    },
  };
}

/** A node's own code could end the operator's session, and its message be of any length. */
function withoutReport(error: unknown): unknown {
  if (!(error instanceof AppError)) return error;
  const code = error.code === "node_unreachable" ? "node_unreachable" : "unavailable";
  return new AppError(code, error.message.slice(0, LONGEST_MESSAGE), { cause: error });
}

/** Nothing bounds the fields that an agent of a later version has beside these. */
function known({ ok, at, instance, checks }: MachineReport): MachineReport {
  return {
    ok,
    at,
    instance,
    checks: checks.map(({ id, section, status, problem, evidence, wayOut }) => {
      return { id, section, status, problem, evidence, wayOut };
    }),
  };
}

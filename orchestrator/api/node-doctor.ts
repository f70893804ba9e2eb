/** The handler of the doctor's report of a node. The node looks at its machine when it is asked, and nothing is kept here. */

import type { nodeDoctorApi } from "../../shared/api/nodes/doctor.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError, isError } from "../../shared/http/errors.ts";
import { check } from "../../shared/http/validate.ts";
import { MachineReport } from "../../shared/program/finding.ts";
import type { Nodes } from "../nodes/nodes.ts";

interface DoctorDeps {
  readonly nodes: Pick<Nodes, "get" | "agent">;
}

/** The agent gives its doctor 65 s. */
const LIMIT_MS = 70_000;

const reports = check(MachineReport, "report");

export function createDoctorHandlers({ nodes }: DoctorDeps): Handlers<typeof nodeDoctorApi> {
  return {
    async examineNode({ params: { nodeID } }, { signal }) {
      const node = nodes.get(nodeID);
      if (node === undefined) throw new AppError("not_found", `node '${nodeID}' not found`);
      const report = await nodes
        .agent(nodeID)
        .examine({}, { timeoutMs: LIMIT_MS, signal })
        .catch((error: unknown) => {
          if (!isError(error, "not_found")) throw error;
          const message = `the agent of node '${nodeID}' is of version ${node.facts.version}, which has no report for the console`;
          throw new AppError("unavailable", message, { cause: error });
        });
      // A node is trusted with less than the page that shows its words.
      if (!reports.passes(report)) throw new AppError("unavailable", `node '${nodeID}' answered with no report`);
      return report;
    },
  };
}

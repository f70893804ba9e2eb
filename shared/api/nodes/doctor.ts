/** The doctor's report of a node's machine, for operators. */

import { Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { MachineReport } from "../../program/finding.ts";

export type { MachineReport };

export const nodeDoctorApi = contract({
  examineNode: {
    tag: "Admin",
    access: "admin",
    method: "GET",
    path: "/nodes/{nodeID}/doctor",
    summary:
      "Let a node's agent run the checks of `svc doctor` on its machine, which takes some seconds; 503: no report",
    params: Type.Object({ nodeID: Type.String({ minLength: 1, maxLength: 64 }) }),
    status: 200,
    reply: MachineReport,
    errors: [401, 404, 503],
  },
});

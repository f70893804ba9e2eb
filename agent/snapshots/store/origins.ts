/** Properties of this machine that memory images depend on. */

import { release } from "node:os";
import type { NodeFacts } from "../../../shared/agent-api/routes.ts";
import type { Machine } from "../../host/machine.ts";
import type { Origins } from "../../host/origins.ts";

export function originsHere(
  { detail }: NodeFacts["capabilities"],
  { cpuFlags, facts }: Pick<Machine, "cpuFlags" | "facts">,
): Omit<Origins, "envd"> {
  return {
    kernel: release(),
    architecture: facts.cpuArchitecture,
    cpuFlags,
    criu: detail["criu"] ?? "unknown",
    runc: detail["runc"] ?? "unknown",
  };
}

/** What the edge answers to a request that its next hop could not carry, and that goes nowhere else. Pure. */

import type { Failure } from "../../../shared/proxy/sending/forward-plan.ts";
import type { Refusal } from "./answers.ts";

/** The sandbox is where its route led. */
type FailureThere = Exclude<Failure, { readonly is: "removed" | "unreachable" }>;

export function refusalFor(
  failure: FailureThere,
  { sandboxId, port }: { readonly sandboxId: string; readonly port: number },
): Refusal {
  switch (failure.is) {
    case "held":
      return { is: failure.cutOff ? "cut_off" : "held", sandboxId };
    case "stopping":
      return failure.underWay ? { is: "interrupted", sandboxId, by: "stop" } : { is: "node_unreachable", sandboxId };
    case "closed":
      return { is: "closed_port", sandboxId, port };
    case "bad_response":
      return { is: "bad_response", sandboxId, port, reason: failure.reason };
    case "unforwardable":
      return { is: "text", status: 501, message: failure.message };
  }
}

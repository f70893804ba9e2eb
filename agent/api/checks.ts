/** What readiness asks of the agent: each check is undefined, or says what is wrong. */

import { findingText } from "../../shared/program/finding.ts";
import type { EngineWatch } from "../containers/engine-watch.ts";
import type { EgressProcess } from "../egress-supervisor/process.ts";
import type { Lease } from "../lease/lease.ts";
import type { Reach } from "../network/reach/reach.ts";
import type { Serving } from "../serving/serving.ts";
import type { Contact } from "./report.ts";
import type { OperatorDeps } from "./server.ts";

export interface ChecksDeps {
  readonly engine: EngineWatch;
  readonly egressProcess: EgressProcess;
  readonly reach: Reach;
  readonly contact: Contact;
  readonly serving: Serving;
  readonly lease: Pick<Lease, "problem">;
}

export function checksOf(deps: ChecksDeps): ReturnType<OperatorDeps["checks"]> {
  const { engine, egressProcess, reach, contact, serving, lease } = deps;
  return {
    engine: engine.connected ? undefined : "the Docker daemon does not answer",
    "egress process": egressProcess.problem,
    network: reach.findings().map(findingText).join(" | ") || undefined,
    orchestrator: contact.reached ? undefined : (contact.problem ?? "the orchestrator does not answer"),
    "way back": contact.unreached,
    store: serving.refusal,
    lease: lease.problem,
  };
}

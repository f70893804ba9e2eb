/** Constructs the gate, the egress process and the log of decisions. Recovery has rebuilt the firewall before. */

import type { Log } from "../../shared/program/log.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { EgressProcess, OnDecisions } from "../egress-supervisor/process.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Stores } from "../store/stores.ts";
import type { Firewall } from "./firewall.ts";
import { createGate } from "./gate.ts";
import { startKernelLog } from "./kernel-log.ts";

/** After this time the agent serves without the egress process: readiness says so, and flows that need it are refused. */
const BEGIN_LIMIT_MS = 5_000;

export interface NetworkDeps {
  readonly firewall: Firewall;
  readonly egress: (onDecisions: OnDecisions) => EgressProcess;
  readonly stores: Pick<Stores, "networkLog">;
  readonly running: readonly Sandbox[];
  readonly now: () => number;
  readonly log: Log;
}

export async function startNetwork({ firewall, running, stores, now, log, ...deps }: NetworkDeps, teardown: Teardown) {
  const store = stores.networkLog;
  const egress = deps.egress((sandboxId, entries, suppressed) => store.add(sandboxId, entries, suppressed));
  const gate = createGate({ firewall, egress, log });
  for (const { container, executionId, sandboxId, egress: policy } of running) {
    gate.adopt(container.slot, { executionId, sandboxId }, policy);
  }
  teardown.add("egress process", () => egress.stop());
  await egress.begin(gate.guests(), BEGIN_LIMIT_MS);
  const kernelLog = startKernelLog({ firewall, gate, store, now, log });
  teardown.add("kernel decisions", () => kernelLog.stop());
  return { gate, egress };
}

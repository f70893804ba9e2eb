/** Constructs the slots, the gate, the egress process and the log of decisions. Recovery has rebuilt the firewall before. */

import type { Log } from "../../shared/program/log.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import type { AgentConfig } from "../config.ts";
import type { EgressProcess, OnDecisions, PlaceholderSource } from "../egress-supervisor/process.ts";
import type { Peering } from "../joining/peering.ts";
import type { Plan } from "../network/addresses.ts";
import type { Firewall } from "../network/firewall.ts";
import { createGate } from "../network/gate.ts";
import { startKernelLog } from "../network/kernel-log.ts";
import type { Links } from "../network/links.ts";
import type { ReachProbe } from "../network/reach/host-probe.ts";
import { createReach } from "../network/reach/reach.ts";
import { createSlots } from "../network/slots.ts";
import type { RecoveryResult } from "../recovery/apply.ts";
import type { Stores } from "../store/stores.ts";
import type { Events } from "./events.ts";
import { createPlaceholders } from "./placeholders.ts";

/** After this time the agent serves without the egress process: readiness says so, and flows that need it are refused. */
const BEGIN_LIMIT_MS = 5_000;

export interface NetworkDeps {
  readonly plan: Plan;
  readonly links: Links;
  readonly firewall: Firewall;
  readonly reachProbe: ReachProbe | undefined;
  readonly egress: (onDecisions: OnDecisions, placeholders: PlaceholderSource) => EgressProcess;
  readonly now: () => number;
  readonly log: Log;
}

interface NetworkSources {
  readonly peering: Peering;
  readonly stores: Pick<Stores, "networkLog">;
  readonly found: Pick<RecoveryResult, "sandboxes" | "frozen" | "pooled" | "leftoverSlots">;
  /** Resolves when nothing uses the leftover slots. */
  readonly cleared: Promise<void>;
  readonly events: Events;
}

export async function startNetwork(
  config: Pick<AgentConfig, "slotsAhead" | "orchestratorUrl" | "withoutNetwork">,
  { plan, links, firewall, now, log, ...deps }: NetworkDeps,
  { stores, found, cleared, events, peering }: NetworkSources,
  teardown: Teardown,
) {
  const slots = createSlots({ plan, links, firewall, log, ahead: config.slotsAhead });
  teardown.add("slots", () => slots.stop());
  const kept = [...[...found.sandboxes, ...found.frozen].map(({ container }) => container), ...found.pooled];
  const used = kept.map(({ slot }) => slot.number);
  slots.adopt(used, found.leftoverSlots, cleared);

  const store = stores.networkLog;
  const values = createPlaceholders({ orchestratorUrl: config.orchestratorUrl, peering, now, log }, teardown);
  const egressProcess = deps.egress(
    (sandboxId, entries, suppressed) => store.add(sandboxId, entries, suppressed),
    values,
  );
  const gate = createGate({ firewall, egress: egressProcess, values, log });
  for (const { container, executionId, sandboxId, egress: policy } of found.sandboxes) {
    gate.adopt(container.slot, { executionId, sandboxId }, policy);
  }
  teardown.add("egress process", () => egressProcess.stop());
  await egressProcess.begin(gate.guests(), BEGIN_LIMIT_MS);
  const kernelLog = startKernelLog({ firewall, gate, store, now, log });
  teardown.add("kernel decisions", () => kernelLog.stop());
  const reach = createReach({
    plan,
    probe: deps.reachProbe,
    refuse: config.withoutNetwork === "refuse",
    egressWorks: () => egressProcess.problem === undefined,
    onChange: () => void events.emit("changed"),
    log,
  });
  teardown.add("reach", () => reach.stop());
  return { slots, gate, egressProcess, values, reach };
}

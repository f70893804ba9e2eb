/** Constructs the slots, the gate, the egress process and the log of decisions. Recovery has rebuilt the firewall before. */

import { withDeadline } from "../../shared/program/deadline.ts";
import { createGate } from "../network/gate.ts";
import { startKernelLog } from "../network/kernel-log.ts";
import { createReach } from "../network/reach/reach.ts";
import { createSlots } from "../network/slots.ts";
import { startValues } from "../placeholders/start-values.ts";
import { guestOf } from "../sandboxes/sandbox.ts";
import type { Base } from "./base.ts";
import type { Recovered } from "./recovery.ts";

/** After this time the agent serves without the egress process: readiness says so, and flows that need it are refused. */
const READY_LIMIT_MS = 5_000;

export type NetworkParts = Awaited<ReturnType<typeof startNetwork>>;

export async function startNetwork(base: Base, { found, cleared }: Recovered) {
  const { config, machine, peering, orchestrators, stores, events, now, log, teardown } = base;
  const { plan, links, firewall } = machine.network;
  const slots = createSlots({ plan, links, firewall, log, ahead: config.slotsAhead });
  teardown.add("slots", () => slots.stop());
  const kept = [...[...found.sandboxes, ...found.frozen].map(({ container }) => container), ...found.pooled];
  const used = kept.map(({ slot }) => slot.number);
  slots.adopt(used, found.leftoverSlots, cleared);

  const store = stores.networkLog;
  const values = startValues({ orchestrators, peering, now, log }, teardown);
  const guests = found.sandboxes.map(guestOf);
  const egressProcess = machine.egress.start({
    sandboxes: guests,
    placeholders: values,
    onDecisions: (sandboxId, entries, suppressed) => store.add(sandboxId, entries, suppressed),
  });
  teardown.add("egress process", () => egressProcess.stop());
  const gate = createGate({ firewall, egress: egressProcess, values, guests, log });
  await withDeadline(egressProcess.ready, READY_LIMIT_MS, () => undefined);
  const kernelLog = startKernelLog({ firewall, gate, store, now, log });
  teardown.add("kernel decisions", () => kernelLog.stop());
  const reach = createReach({
    plan,
    probe: machine.reachProbe,
    refuse: config.withoutNetwork === "refuse",
    egressWorks: () => egressProcess.problem === undefined,
    onChange: () => void events.emit("changed"),
    log,
  });
  teardown.add("reach", () => reach.stop());
  return { slots, gate, egressProcess, values, reach };
}

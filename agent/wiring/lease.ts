/** Constructs the node's lease over the live set. What an earlier agent process left stands still before anything reaches it. */

import { createLease, type Lease } from "../lease/lease.ts";
import type { Base } from "./base.ts";
import type { NetworkParts } from "./network.ts";
import type { NodeParts } from "./node.ts";
import type { LiveParts } from "./sandboxes.ts";

interface LeaseSources {
  readonly network: NetworkParts;
  readonly node: NodeParts;
  readonly live: LiveParts;
}

export async function createLeasePart(base: Base, { network, node, live }: LeaseSources): Promise<Lease> {
  const { config, machine, stores, events, log, teardown } = base;
  const lease = createLease({
    bootId: machine.host.bootId,
    sinceBoot: () => machine.host.sinceBoot(),
    store: stores.lease,
    live: live.set,
    isHeld: (id) => node.disk.isHeld(id),
    gate: network.gate,
    freezes: config.withoutOrchestrator === "freeze",
    onChange: () => void events.emit("changed"),
    log,
  });
  teardown.add("lease", () => lease.stop());
  await lease.check();
  return lease;
}

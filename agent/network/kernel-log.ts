/** Reads the kernel's decisions about flows every second and logs them in the words of the policy decision. */

import type { NetworkLogEntry } from "../../shared/agent-api/routes.ts";
import { decide } from "../../shared/policy/decide.ts";
import type { EgressPolicy } from "../../shared/policy/egress-policy.ts";
import type { Log } from "../../shared/program/log.ts";
import { type Loop, loop } from "../../shared/program/loop.ts";
import type { NetworkLogStore } from "../store/network-log.ts";
import type { Firewall } from "./firewall.ts";
import type { Gate } from "./gate.ts";
import type { KernelFlow } from "./kernel-flows.ts";

/** Shorter than the time that an address rests after use, so no flow is logged for its next owner. */
const EVERY_MS = 1_000;

export interface KernelLogDeps {
  readonly firewall: Pick<Firewall, "decisions">;
  readonly gate: Pick<Gate, "lastAt">;
  readonly store: Pick<NetworkLogStore, "add">;
  readonly now: () => number;
  readonly log: Log;
}

export function startKernelLog({ firewall, gate, store, now, log }: KernelLogDeps): Loop {
  return loop({ name: "kernel decisions", everyMs: EVERY_MS, log }, async () => {
    const { flows, unlogged } = await firewall.decisions();
    const bySource = new Map<string, KernelFlow[]>([...unlogged.keys()].map((source) => [source, []]));
    for (const flow of flows) bySource.set(flow.source, [...(bySource.get(flow.source) ?? []), flow]);
    for (const [source, some] of bySource) {
      const sandbox = gate.lastAt(source);
      if (sandbox === undefined) continue;
      const entries = some.map((flow) => toEntry(flow, sandbox.policy, now()));
      store.add(sandbox.sandboxId, entries, unlogged.get(source) ?? 0);
    }
  });
}

function toEntry(flow: KernelFlow, policy: EgressPolicy, at: number): NetworkLogEntry {
  const { address, port, protocol, outcome, count } = flow;
  const { verdict, rule } = decide({ address, port, protocol }, policy);
  const agreed = verdict === (outcome === "allowed" ? "allow" : "deny");
  return {
    at,
    protocol,
    address,
    port,
    verdict: outcome === "allowed" ? "allow" : "deny",
    // The two verdicts differ when the policy changed meanwhile, and when the egress process was down.
    rule: outcome === "crowded" ? "limit connections" : agreed ? rule : outcome === "denied" ? "failed" : "default",
    count,
    sentBytes: 0,
    receivedBytes: 0,
  };
}

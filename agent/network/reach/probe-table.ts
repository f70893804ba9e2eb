/**
 * The table that catches the probe's packets behind all other rules of the host, where they would leave it or reach a program
 * of the node, and what it has counted. It exists only during a probe. Pure.
 */

import type { Plan } from "../addresses.ts";

/** A way of a sandbox's packets: straight out of the host, to the node's resolver, or to the egress process. */
export const WAYS = ["forward", "resolver", "egress"] as const;
export type Way = (typeof WAYS)[number];

/** After every other chain of the same hook. */
const LAST = 2_147_483_647;
/** Before connection tracking, so that a trace shows every rule. */
const FIRST = -450;

export function probeTable({ network }: Pick<Plan, "network">): string {
  return `${network}_probe`;
}

/** @param traced the kernel reports every rule that the packets meet */
export function probeTableText(plan: Pick<Plan, "network" | "probe">, traced: boolean): string {
  const table = probeTable(plan);
  const { address, link } = plan.probe;
  const from = `iifname "${link}" ip saddr ${address}`;
  const trace = `  chain first {
    type filter hook prerouting priority ${FIRST}; policy accept;
    ${from} meta nftrace set 1
  }
`;
  // The address of a packet that leaves is the host's by then; without connection tracking it is still the probe's. A
  // refusal goes back over the link of the probe, and does not leave.
  const leaves = `oifname != "${link}"`;
  return `add table inet ${table}
delete table inet ${table}
table inet ${table} {
${traced ? trace : ""}  chain leaving {
    type filter hook postrouting priority ${LAST}; policy accept;
    ${leaves} ct original ip saddr ${address} counter drop comment "forward"
    ${leaves} ip saddr ${address} counter drop comment "forward"
  }
  chain arriving {
    type filter hook input priority ${LAST}; policy accept;
    ${from} udp dport 53 counter drop comment "resolver"
    ${from} tcp dport 443 counter drop comment "egress"
  }
}
`;
}

/** Whether packets came by, for each way. @param json output of `nft -j list table` */
export function readArrived(json: string): ReadonlySet<Way> {
  const arrived = new Set<Way>();
  for (const { comment, packets } of rulesIn(json)) {
    const way = WAYS.find((one) => one === comment);
    if (way !== undefined && packets > 0) arrived.add(way);
  }
  return arrived;
}

interface Json {
  readonly [name: string]: unknown;
}

function rulesIn(json: string): { comment: unknown; packets: number }[] {
  let document: unknown;
  try {
    document = JSON.parse(json);
  } catch {
    return [];
  }
  return listOf(document, "nftables").flatMap((entry) => {
    const rule = isJson(entry) ? entry["rule"] : undefined;
    if (!isJson(rule)) return [];
    const counters = listOf(rule, "expr").flatMap((one) => {
      const counter = isJson(one) ? one["counter"] : undefined;
      return isJson(counter) ? [Number(counter["packets"])] : [];
    });
    return [{ comment: rule["comment"], packets: counters.reduce((sum, packets) => sum + packets, 0) }];
  });
}

function listOf(value: unknown, name: string): readonly unknown[] {
  const list = isJson(value) ? value[name] : undefined;
  return Array.isArray(list) ? list : [];
}

function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

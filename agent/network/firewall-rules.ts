/**
 * The nftables table of a node as text, and the commands that change it. It asks the policy at every packet, so a tightened
 * policy cuts what it forbids of the flows that are open. Pure.
 */

import type { KernelPolicy } from "../../shared/policy/egress-policy.ts";
import { ALWAYS_DENIED, addressText, mergeRanges, parseRange, type Range } from "../../shared/policy/ranges.ts";
import type { Plan } from "./addresses.ts";
import { PERMITTED_MARK, REDIRECTED_MARK } from "./routing.ts";

/** The kernel's rules for one slot. */
export interface SlotPolicy {
  readonly link: string;
  readonly address: string;
  /** Whether the slot may send to the resolver and to what its policy allows; all its traffic is denied otherwise. */
  readonly open: boolean;
  readonly policy?: KernelPolicy;
  /** Connections that the egress process had taken before its policy stopped redirecting still belong to it. */
  readonly wasRedirected?: boolean;
}

export interface TableOptions {
  /** Where the egress process listens, on the gateway's address. */
  readonly egressPort: number;
  /** Connections of one sandbox that the kernel forwards at a time. */
  readonly connections: number;
  /** Whether sandboxes may use the egress process as their proxy, at its own address. */
  readonly proxy?: boolean;
}

/**
 * Sets of what slots are and may; their elements are all that changes when a sandbox comes or goes. Each one permits
 * something, or hands it to the egress process: who is taken out of it, or whose set is flushed by another tool, may do
 * less. What is always denied is therefore part of the rules, where no element can change it.
 */
export const SLOT_SETS = ["pinned", "open", "redirected", "tunnelled", "diverted", "free", "allowed"] as const;
export type SlotSet = (typeof SLOT_SETS)[number];

/** Sets with the kernel's decisions, for the log: `source . destination . protocol . port` with a counter of packets. */
export const LOG_SETS = ["granted", "denials", "crowded"] as const;
export type LogSet = (typeof LOG_SETS)[number];

/** An element of the log stays for this long after its last packet; the log is read more often, so it misses none. */
const LOG_SECONDS = 10;
const LOG_SIZE = 4_096;
/**
 * Limit of new connections of one sandbox, to the internet, the egress process and the resolver together. The kernel
 * remembers a connection for up to two minutes after its end, in a table that all programs of the machine share: this
 * many take 35 000 entries of it at most.
 */
const NEW_CONNECTIONS = "250/second burst 5000 packets";
/** Limit of new entries of one sandbox; further ones are only counted. */
const LOG_PACE = "20/second burst 100 packets";

const SET_TYPES: Readonly<Record<SlotSet, string>> = {
  pinned: "type ifname . ipv4_addr",
  open: "type ifname",
  redirected: "type ifname",
  tunnelled: "type ifname",
  diverted: "type ifname",
  free: "type ifname",
  allowed: "type ipv4_addr . ipv4_addr\n    flags interval",
};

/**
 * The whole table, replaced in one transaction. The number of rules does not grow with the sandboxes: a slot is an
 * element of `pinned` (it may only speak with its own address on its own link) and perhaps of others. No rule accepts
 * what is established before the policy was asked, so a tightened policy cuts a flow at its next packet, both ways.
 *
 * The policy is asked twice. Before the routing it gives the mark without which a packet is not forwarded: a packet that is
 * between the two hooks at the moment when another tool empties the table has been permitted already. While it is forwarded
 * its address may be another one, which a rule of the host has put in its place.
 */
export function tableText(plan: Plan, slots: Iterable<SlotPolicy>, options: TableOptions): string {
  const all = [...slots].map(slotElements);
  const from = `iifname "${plan.network}-*"`;
  const to = `oifname "${plan.network}-*"`;
  const permitted = hex(PERMITTED_MARK);
  const redirected = hex(REDIRECTED_MARK);
  const taken = hex(PERMITTED_MARK | REDIRECTED_MARK);
  // Only the first packet: datagrams that get no answer, and repeated requests, take no further entry.
  const firstPacket = "ct state new ct status & confirmed == 0";
  const denied = `{ ${deniedRanges(plan).join(", ")} }`;
  return `add table inet ${plan.network}
delete table inet ${plan.network}
table inet ${plan.network} {
${SLOT_SETS.map((name) =>
  set(
    name,
    SET_TYPES[name],
    all.flatMap((slot) => slot[name] ?? []),
  ),
).join("")}${LOG_SETS.map(logSet).join("")}  set connections {
    type ipv4_addr
    size 65535
    flags dynamic
  }
  set arrivals {
    type ipv4_addr
    size 65535
    flags dynamic,timeout
    timeout 1m
  }
  set pace {
    type ipv4_addr
    size 65535
    flags dynamic,timeout
    timeout 1m
  }
  set unlogged {
    type ipv4_addr
    size 65535
    flags dynamic,timeout
    counter
    timeout 1h
  }
  chain before {
    type filter hook prerouting priority -160; policy accept;
    ${from} jump arriving
  }
  chain arriving {
    meta nfproto != ipv4 return
    iifname . ip saddr != @pinned return
    iifname != @open return
    meta l4proto != { tcp, udp } return
    iifname @diverted meta l4proto tcp socket transparent 1 meta mark set meta mark | ${taken} accept
    fib daddr type { local, broadcast, multicast } return
    iifname @redirected meta l4proto tcp jump hand_over
    ip daddr ${denied} goto silence
    th dport { 53, 853 } goto silence
    iifname @redirected goto refuse
    iifname @free goto permit
    ip saddr . ip daddr @allowed goto permit
    goto refuse
  }
  chain hand_over {
    tcp dport { 53, 853 } return
    iifname != @tunnelled ip daddr ${denied} return
    meta l4proto tcp tproxy ip to ${plan.gateway}:${options.egressPort} meta mark set meta mark | ${taken} accept
  }
  chain permit {
    meta mark set meta mark | ${permitted}
  }
  chain forward {
    type filter hook forward priority -10; policy accept;
    ${from} jump out
    ${to} jump into
  }
  chain out {
    meta nfproto != ipv4 drop
    iifname . ip saddr != @pinned drop
    ${to} drop
    iifname != @open drop
    meta l4proto != { tcp, udp } drop
    ip daddr ${denied} goto silence
    th dport { 53, 853 } goto silence
    iifname @redirected goto refuse
    iifname @free goto pass
    ip saddr . ip daddr @allowed goto pass
    goto refuse
  }
  chain pass {
    ct state established,related accept
    ct state invalid drop
    add @connections { ip saddr ct count over ${options.connections} } goto crowd
    ${firstPacket} update @arrivals { ip saddr limit rate over ${NEW_CONNECTIONS} } goto crowd
    jump tell_granted
    accept
  }
  chain refuse {
    jump tell_denials
    meta l4proto tcp reject with tcp reset
    reject with icmp admin-prohibited
  }
  chain silence {
    jump tell_denials
    drop
  }
  chain crowd {
    jump tell_crowded
    meta l4proto tcp reject with tcp reset
    reject with icmp admin-prohibited
  }
${LOG_SETS.map(tellChain).join("")}  chain into {
    ct state != { established, related } drop
    oifname != @open drop
    ip protocol icmp accept
    oifname @redirected drop
    ip saddr ${denied} drop
    oifname @free accept
    ip daddr . ip saddr @allowed accept
    drop
  }
  chain input {
    type filter hook input priority -10; policy accept;
    ${from} jump local
  }
  chain local {
    meta nfproto != ipv4 drop
    iifname . ip saddr != @pinned drop
    ${firstPacket} update @arrivals { ip saddr limit rate over ${NEW_CONNECTIONS} } drop
    meta mark & ${redirected} == ${redirected} iifname @open accept
    ct direction reply ct state established accept
    ip daddr ${plan.gateway} meta l4proto { tcp, udp } th dport 53 iifname @open accept
${options.proxy === true ? `    ip daddr ${plan.gateway} tcp dport ${options.egressPort} iifname @open accept\n` : ""}    drop
  }
  chain output {
    type filter hook output priority -10; policy accept;
    ${to} meta nfproto != ipv4 drop
  }
  chain postrouting {
    type nat hook postrouting priority 100; policy accept;
    ip saddr ${plan.subnet} ${to.replace("oifname", "oifname !=")} masquerade
  }
}
`;
}

/**
 * The command that brings a slot from one state to another (undefined: the slot is absent), as one transaction on one
 * line; undefined when there is nothing to change.
 */
export function changeCommand(
  plan: Plan,
  before: SlotPolicy | undefined,
  after: SlotPolicy | undefined,
): string | undefined {
  const old = before === undefined ? {} : slotElements(before);
  const fresh = after === undefined ? {} : slotElements(after);
  const commands = SLOT_SETS.flatMap((name) => [
    change("delete", plan, name, without(old[name], fresh[name])),
    change("add", plan, name, without(fresh[name], old[name])),
  ]).filter((command) => command !== undefined);
  return commands.length === 0 ? undefined : commands.join("; ");
}

/** The elements of a slot in the syntax of `nft`. Ranges are disjoint, so no two elements conflict. */
export function slotElements({
  link,
  address,
  open,
  policy,
  wasRedirected = false,
}: SlotPolicy): Partial<Record<SlotSet, readonly string[]>> {
  const one = [`"${link}"`];
  return {
    pinned: [`"${link}" . ${address}`],
    ...(open ? { open: one } : {}),
    ...(policy?.redirected === true ? { redirected: one } : {}),
    ...(policy?.tunnelled === true ? { tunnelled: one } : {}),
    ...(wasRedirected && policy?.redirected !== true ? { diverted: one } : {}),
    ...(policy?.free === true ? { free: one } : {}),
    ...(policy === undefined || policy.allowed.length === 0
      ? {}
      : { allowed: policy.allowed.map((range) => `${address} . ${rangeText(range)}`) }),
  };
}

function deniedRanges({ subnet }: Plan): readonly string[] {
  const ranges = [...ALWAYS_DENIED, subnet].map(parseRange).filter((range) => range !== undefined);
  return mergeRanges(ranges).map(rangeText);
}

function rangeText({ first, last }: Range): string {
  return first === last ? addressText(first) : `${addressText(first)}-${addressText(last)}`;
}

function without(items: readonly string[] = [], others: readonly string[] = []): readonly string[] {
  if (others.length === 0) return items;
  const known = new Set(others);
  return items.filter((item) => !known.has(item));
}

function change(verb: string, plan: Plan, name: SlotSet, items: readonly string[]): string | undefined {
  return items.length === 0 ? undefined : `${verb} element inet ${plan.network} ${name} { ${items.join(", ")} }`;
}

function set(name: string, type: string, items: readonly string[]): string {
  const elements = items.length === 0 ? "" : `    elements = { ${items.join(", ")} }\n`;
  return `  set ${name} {\n    ${type}\n${elements}  }\n`;
}

function logSet(name: LogSet): string {
  return `  set ${name} {
    type ipv4_addr . ipv4_addr . inet_proto . inet_service
    size ${LOG_SIZE}
    flags dynamic,timeout
    counter
    timeout ${LOG_SECONDS}s
  }
`;
}

// A full set ends the logging rule, never the chain: the log does not change which packets pass.
function tellChain(name: LogSet): string {
  return `  chain tell_${name} {
    update @pace { ip saddr limit rate over ${LOG_PACE} } add @unlogged { ip saddr } return
    update @${name} { ip saddr . ip daddr . meta l4proto . th dport }
  }
`;
}

function hex(mark: number): string {
  return `0x${mark.toString(16)}`;
}

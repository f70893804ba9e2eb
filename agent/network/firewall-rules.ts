/** The nftables table of a node as text, and the commands that change it. Pure; design.md §7, field.md §4.4. */

import type { Plan } from "./addresses.ts";

/** Never reachable, whatever a policy says (design.md §7; 168.63.129.16 is a cloud's metadata on a public address). */
export const ALWAYS_DENIED = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "224.0.0.0/4",
  "240.0.0.0/4",
] as const;

/** What the kernel knows of one slot. */
export interface SlotPolicy {
  readonly link: string;
  readonly address: string;
  /** May speak to the internet and to the resolver. Everything else is denied before and after. */
  readonly open: boolean;
}

/**
 * The whole table, replaced in one transaction. The number of rules does not grow with the sandboxes: a slot is an
 * element of `pinned` (it may only speak with its own address on its own link) and perhaps of `open`.
 */
export function tableText(plan: Plan, slots: Iterable<SlotPolicy>): string {
  const all = [...slots];
  const from = `iifname "${plan.network}-*"`;
  const to = `oifname "${plan.network}-*"`;
  return `add table inet ${plan.network}
delete table inet ${plan.network}
table inet ${plan.network} {
  set pinned {
    type ifname . ipv4_addr
${elements(all.map(pin))}  }
  set open {
    type ifname
${elements(all.filter(({ open }) => open).map(({ link }) => `"${link}"`))}  }
  set denied {
    type ipv4_addr
    flags interval
    auto-merge
    elements = { ${[...ALWAYS_DENIED, plan.subnet].join(", ")} }
  }
  set empty {
    type ifname
  }
  chain forward {
    type filter hook forward priority -10; policy accept;
    ${from} jump out
    ${to} ct state established,related accept
    ${to} drop
  }
  chain out {
    meta nfproto != ipv4 drop
    iifname . ip saddr != @pinned drop
    ${to} drop
    ip daddr @denied drop
    meta l4proto != { tcp, udp } drop
    th dport { 53, 853 } drop
    iifname @open accept
    drop
  }
  chain input {
    type filter hook input priority -10; policy accept;
    ${from} jump local
  }
  chain local {
    meta nfproto != ipv4 drop
    iifname . ip saddr != @pinned drop
    ct direction reply ct state established accept
    ip daddr ${plan.gateway} meta l4proto { tcp, udp } th dport 53 iifname @open accept
    drop
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

export function pinCommand(plan: Plan, slot: SlotPolicy): string {
  return `add element inet ${plan.network} pinned { ${pin(slot)} }`;
}

export function openCommand(plan: Plan, { link }: SlotPolicy): string {
  return `add element inet ${plan.network} open { "${link}" }`;
}

/** Adding before deleting makes it succeed whether or not the element was there. */
export function closeCommand(plan: Plan, { link }: SlotPolicy): string {
  const element = `element inet ${plan.network} open { "${link}" }`;
  return `add ${element}; delete ${element}`;
}

export function forgetCommand(plan: Plan, slot: SlotPolicy): string {
  const element = `element inet ${plan.network} pinned { ${pin(slot)} }`;
  return `${closeCommand(plan, slot)}; add ${element}; delete ${element}`;
}

function pin({ link, address }: SlotPolicy): string {
  return `"${link}" . ${address}`;
}

function elements(items: readonly string[]): string {
  return items.length === 0 ? "" : `    elements = { ${items.join(", ")} }\n`;
}

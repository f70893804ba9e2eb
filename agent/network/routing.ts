/**
 * The part of the network's protection that survives a flush of nftables: rules of the routing policy, which no flush of a
 * ruleset removes. A sandbox's packet without the table's mark is not forwarded; one with the mark for the egress process
 * is delivered to this host, for every destination.
 */

import { addressNumber } from "../../shared/policy/ranges.ts";
import { looking, type RunCommand } from "../host/command.ts";
import type { Plan } from "./addresses.ts";

/** Mark of a packet that comes from its own link with its own address, and that the policy lets go where it goes. */
export const PERMITTED_MARK = 0x10000000;
/** Mark of a packet that belongs to a connection of the egress process. */
export const REDIRECTED_MARK = 0x20000000;

const EXEMPT = 7000;
const DROP = 7001;
const REDIRECT = 7002;

export interface Routing {
  /** Adds the rules and routes that are missing. True: some were missing. */
  keep(): Promise<boolean>;
}

export function hostRouting(plan: Plan, run: RunCommand): Routing {
  const wanted = routingRules(plan);
  const table = routingTable(plan);
  const look = looking(run);
  return {
    async keep() {
      const [rules, route] = await Promise.all([
        look("ip", ["rule", "show"]).then(parseRules),
        look("ip", ["route", "show", "table", String(table)]).catch(() => ""),
      ]);
      const missing = wanted.filter((rule) => !rules.has(rule.shown));
      const routed = /^local default dev lo\b/m.test(route);
      if (missing.length === 0 && routed) return false;
      const input = [
        ...(routed ? [] : [`route replace local default dev lo table ${table}`]),
        ...missing.map(({ pref, text }) => `rule add pref ${pref} ${text}`),
      ];
      await run("ip", ["-batch", "-"], { input: `${input.join("\n")}\n` });
      return true;
    },
  };
}

/**
 * The rules in the order in which they are added: the target of jumps comes first. Packets of this machine, and its
 * reverse path look-ups, carry no mark; both come in by `lo`.
 */
export function routingRules(plan: Plan): readonly { pref: number; text: string; shown: string }[] {
  const from = `from ${plan.subnet}`;
  return [
    {
      pref: REDIRECT,
      text: `${from} fwmark ${hex(REDIRECTED_MARK)}/${hex(REDIRECTED_MARK)} lookup ${routingTable(plan)}`,
    },
    { pref: EXEMPT, text: `${from} iif lo goto ${REDIRECT}` },
    { pref: DROP, text: `${from} fwmark 0/${hex(PERMITTED_MARK)} blackhole` },
  ].map((rule) => ({ ...rule, shown: `${rule.pref}: ${rule.text}` }));
}

/** A table of the agent's own for each subnet. */
function routingTable({ gateway }: Plan): number {
  return 0x5c000000 + Math.floor((addressNumber(gateway) ?? 0) / 256);
}

function parseRules(text: string): ReadonlySet<string> {
  return new Set(text.split("\n").map((line) => line.trim().replace(/\s+/g, " ")));
}

function hex(mark: number): string {
  return `0x${mark.toString(16)}`;
}

/**
 * The namespace that stands for the internet, with its link and its routes, and two counting tables. One table is at its
 * border. The other one, on the host, also keeps packets of sandboxes from leaving the machine by any other way.
 */

import { run } from "../platform/programs.ts";
import { ADDRESS, FORBIDDEN, HOST_END, INTERNET_END, type InternetPlan, RANGE } from "./plan.ts";

/** Makes the namespace, and first removes the leftovers of a killed run. */
export async function makeNamespace(plan: InternetPlan): Promise<void> {
  await removeNamespace(plan);
  const { namespace, link } = plan;
  const inside = (...args: readonly string[]) => run("ip", ["-n", namespace, ...args]);
  await run("ip", ["netns", "add", namespace]);
  await run("ip", ["link", "add", link, "type", "veth", "peer", "name", "outside", "netns", namespace]);
  await run("nsenter", [`--net=/run/netns/${namespace}`, "nft", borderTable()]);
  await run("nft", [hostTable(plan)]);
  await inside("addr", "add", `${INTERNET_END}/30`, "dev", "outside");
  await inside("link", "set", "outside", "up");
  await inside("link", "set", "lo", "up");
  // On the loopback device the namespace owns every address of the range. It has no default route, so no packet goes further.
  await inside("addr", "add", RANGE.replace(".0/", ".1/"), "dev", "lo");
  for (const address of FORBIDDEN) await inside("addr", "add", `${address}/32`, "dev", "lo");
  await run("ip", ["addr", "add", `${HOST_END}/30`, "dev", link]);
  await run("ip", ["link", "set", link, "up"]);
  // The resolver's own route takes precedence over the one that configure.ts made for the time without an internet.
  const ranges = [RANGE, `${ADDRESS.dns}/32`, ...FORBIDDEN];
  for (const range of ranges) await run("ip", ["route", "add", range, "via", INTERNET_END]);
}

export async function removeNamespace({ namespace, link, table }: InternetPlan): Promise<void> {
  await run("ip", ["link", "del", link]).catch(() => undefined);
  await run("ip", ["netns", "del", namespace]).catch(() => undefined);
  await run("nft", [`add table inet ${table}; delete table inet ${table}`]);
}

/** Counts packets by the address to which they were sent, before any rule could refuse them. */
function borderTable(): string {
  return `table inet border {
  set seen {
    typeof ip saddr . ip daddr . meta l4proto . th dport
    size 65535
    flags dynamic
    counter
  }
  counter others {}
  chain arriving {
    type filter hook prerouting priority -300; policy accept;
    iifname != "outside" return
    meta nfproto ipv6 counter name others
    update @seen { ip saddr . ip daddr . meta l4proto . th dport counter }
  }
}`;
}

/** Counts after every other chain: a packet that arrives here with a sandbox's own address has been let through. */
function hostTable({ table, sandboxLinks, link }: InternetPlan): string {
  return `add table inet ${table}; delete table inet ${table}; table inet ${table} {
  set passed {
    typeof ip saddr . ip daddr . meta l4proto . th dport
    size 65535
    flags dynamic
    counter
  }
  chain leaving {
    type filter hook forward priority 300; policy accept;
    iifname != "${sandboxLinks}" return
    oifname "${sandboxLinks}" return
    update @passed { ip saddr . ip daddr . meta l4proto . th dport counter }
    oifname != "${link}" drop
  }
}`;
}

/** A count of packets from one source to one destination. */
export interface Seen {
  readonly source: string;
  readonly address: string;
  readonly protocol: string;
  readonly port: number;
  readonly packets: number;
}

/**
 * Reads the counts. `border`: arrivals, with the machine's address as source. `passed`: what the host let through, by
 * sandbox.
 */
export async function packetsSeen(plan: InternetPlan, where: "border" | "passed"): Promise<readonly Seen[]> {
  const text =
    where === "border"
      ? await run("nsenter", [
          `--net=/run/netns/${plan.namespace}`,
          "nft",
          "-j",
          "list",
          "set",
          "inet",
          "border",
          "seen",
        ])
      : await run("nft", ["-j", "list", "set", "inet", plan.table, "passed"]);
  const { nftables } = JSON.parse(text) as { nftables: { set?: { elem?: readonly Element[] } }[] };
  return nftables
    .flatMap(({ set }) => set?.elem ?? [])
    .map(({ elem: { val, counter } }) => {
      const [source, address, protocol, port] = val.concat;
      return { source, address, protocol: String(protocol), port: Number(port), packets: counter.packets };
    });
}

interface Element {
  readonly elem: {
    readonly val: { readonly concat: readonly [string, string, string | number, string | number] };
    readonly counter: { readonly packets: number };
  };
}

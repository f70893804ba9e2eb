/**
 * Network namespaces and links of the host: a routed point-to-point link per slot without shared layer 2, so a sandbox has
 * no neighbour to attack. Starts as few processes as possible, because they are most of a slot's cost.
 */

import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import type { RunCommand } from "../host/command.ts";
import type { Plan, Slot } from "./addresses.ts";
import { keepForwarding } from "./kernel/forwarding.ts";

export interface Links {
  /** Sets up the gateway's address and forwarding; may be repeated. */
  prepare(): Promise<void>;
  add(slot: Slot): Promise<void>;
  /** An absent link counts as success. */
  remove(slot: Slot): Promise<void>;
  /** Slots that have a link or a namespace on this host, of this network only. */
  list(): Promise<number[]>;
}

/** @param hasIpv6 whether the kernel has IPv6: one that was started with ipv6.disable=1 has not */
export function hostLinks(plan: Plan, run: RunCommand, hasIpv6 = existsSync("/proc/sys/net/ipv6")): Links {
  const up = linkUp(hasIpv6);
  return {
    async prepare() {
      const present = await isLink(plan.gatewayLink);
      await run("ip", ["-batch", "-"], {
        input: lines(
          ...(present ? [] : [`link add ${plan.gatewayLink} type bridge`]),
          up(plan.gatewayLink),
          `addr replace ${plan.gateway}/32 dev ${plan.gatewayLink}`,
        ),
      });
      await keepForwarding();
    },

    async add(slot) {
      await run("ip", ["-batch", "-"], { input: hostSide(plan, slot, up) });
      await run("nsenter", [`--net=${slot.netnsPath}`, "sh", "-c", INSIDE], { input: sandboxSide(plan, slot, up) });
    },

    async remove(slot) {
      // The link disappears with its namespace after the last process in it has ended, which takes a moment.
      if (await isLink(slot.link))
        await run("ip", ["link", "delete", slot.link]).catch(unless(() => isLink(slot.link)));
      const named = () => isNamespace(slot.link);
      if (await named()) await run("ip", ["netns", "delete", slot.link]).catch(unless(named));
    },

    async list() {
      const [links, named] = await Promise.all([readdir("/sys/class/net"), namespaces()]);
      const numbers = [...links, ...named].map((name) => plan.numberOf(name)).filter((n) => n !== undefined);
      return [...new Set(numbers)];
    },
  };
}

type LinkUp = (link: string) => string;

/** The kernel gives the link no IPv6 address. A kernel without IPv6 refuses the option that says so. */
function linkUp(hasIpv6: boolean): LinkUp {
  return (link) => `link set ${link} ${hasIpv6 ? "addrgenmode none " : ""}up`;
}

// Turns off IPv6 except ::1, where some servers listen, and ICMP sockets. Lets restored servers stay bound to the address
// of their previous container. The port setting is also an option of the container, which a restore does not apply.
const INSIDE =
  "ip -batch - && cd /proc/sys/net && { [ ! -e ipv6 ] || { echo 1 > ipv6/conf/all/disable_ipv6 && echo 0 > ipv6/conf/lo/disable_ipv6; }; } && " +
  'echo "1 0" > ipv4/ping_group_range && echo 1 > ipv4/ip_nonlocal_bind && ' +
  "echo 0 > ipv4/ip_unprivileged_port_start";

function hostSide(plan: Plan, { link, address, hostMac, sandboxMac }: Slot, up: LinkUp): string {
  return lines(
    `netns add ${link}`,
    `link add ${link} address ${hostMac} type veth peer name eth0 address ${sandboxMac} netns ${link}`,
    up(link),
    `neigh replace ${address} lladdr ${sandboxMac} dev ${link} nud permanent`,
    `route replace ${address}/32 dev ${link} src ${plan.gateway}`,
  );
}

function sandboxSide(plan: Plan, { address, hostMac }: Slot, up: LinkUp): string {
  return lines(
    "link set lo up",
    up("eth0"),
    `addr add ${address}/32 dev eth0`,
    `neigh replace ${plan.gateway} lladdr ${hostMac} dev eth0 nud permanent`,
    `route add default via ${plan.gateway} dev eth0 onlink`,
  );
}

function lines(...commands: string[]): string {
  return `${commands.join("\n")}\n`;
}

function namespaces(): Promise<string[]> {
  return readdir("/run/netns").catch(() => [] as string[]);
}

async function isLink(name: string): Promise<boolean> {
  return (await readdir("/sys/class/net")).includes(name);
}

async function isNamespace(name: string): Promise<boolean> {
  return (await namespaces()).includes(name);
}

function unless(stillThere: () => Promise<boolean>): (error: unknown) => Promise<void> {
  return async (error) => {
    if (await stillThere()) throw error;
  };
}

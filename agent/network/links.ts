/**
 * Network namespaces and links of the host: a routed point-to-point link per slot without shared layer 2, so a sandbox has
 * no neighbour to attack. Starts as few processes as possible, because they are most of a slot's cost.
 */

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

export function hostLinks(plan: Plan, run: RunCommand): Links {
  return {
    async prepare() {
      const present = await isLink(plan.gatewayLink);
      await run("ip", ["-batch", "-"], {
        input: lines(
          ...(present ? [] : [`link add ${plan.gatewayLink} type bridge`]),
          `link set ${plan.gatewayLink} addrgenmode none up`,
          `addr replace ${plan.gateway}/32 dev ${plan.gatewayLink}`,
        ),
      });
      await keepForwarding();
    },

    async add(slot) {
      await run("ip", ["-batch", "-"], { input: hostSide(plan, slot) });
      await run("nsenter", [`--net=${slot.netnsPath}`, "sh", "-c", INSIDE], { input: sandboxSide(plan, slot) });
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

// Turns off IPv6 except ::1, where some servers listen, and ICMP sockets. Lets restored servers stay bound to the address
// of their previous container. The port setting is also an option of the container, which a restore does not apply.
const INSIDE =
  "ip -batch - && cd /proc/sys/net && { [ ! -e ipv6 ] || { echo 1 > ipv6/conf/all/disable_ipv6 && echo 0 > ipv6/conf/lo/disable_ipv6; }; } && " +
  'echo "1 0" > ipv4/ping_group_range && echo 1 > ipv4/ip_nonlocal_bind && ' +
  "echo 0 > ipv4/ip_unprivileged_port_start";

function hostSide(plan: Plan, { link, address, hostMac, sandboxMac }: Slot): string {
  return lines(
    `netns add ${link}`,
    `link add ${link} address ${hostMac} type veth peer name eth0 address ${sandboxMac} netns ${link}`,
    `link set ${link} addrgenmode none up`,
    `neigh replace ${address} lladdr ${sandboxMac} dev ${link} nud permanent`,
    `route replace ${address}/32 dev ${link} src ${plan.gateway}`,
  );
}

function sandboxSide(plan: Plan, { address, hostMac }: Slot): string {
  return lines(
    "link set lo up",
    "link set eth0 addrgenmode none up",
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

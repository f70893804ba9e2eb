/**
 * Sends packets as a sandbox would, from a link and a namespace of its own, and looks whether they come through every rule of the
 * host. They are caught behind the last rule, so nothing leaves the machine. Where one does not come through, the kernel's
 * trace names the rule that ended it.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { CLOSED, type EgressPolicy, OPEN } from "../../../shared/policy/egress-policy.ts";
import { looking, type RunCommand } from "../../host/command.ts";
import type { Plan } from "../addresses.ts";
import type { Firewall } from "../firewall.ts";
import type { Links } from "../links.ts";
import { PERMITTED_MARK } from "../routing.ts";
import type { Obstacle } from "./findings.ts";
import { probeTable, probeTableText, readArrived, type Way } from "./probe-table.ts";
import { type Culprit, culpritsIn, culpritText, ruleByHandle } from "./trace.ts";

/** A policy of names: the egress process gets the connection. */
const NAMED: EgressPolicy = { ...CLOSED, allowDomains: ["probe.invalid"] };
/** A packet takes microseconds; the waits are for a machine whose processors are all busy. */
const ARRIVES_WITHIN_MS = [0, 20, 100, 300];
const LISTEN_LIMIT_MS = 5_000;
/** From the last packet to the end of its trace, where a rule of nftables ends it; on a busy machine `nft` prints late. */
const TRACE_LIMIT_MS = 1_500;
const TRACE_POLL_MS = 25;
const MAX_TRACE_CHARACTERS = 1_000_000;

/** By which a trace tells the packets of a way. */
const PROTOCOLS: Readonly<Record<Way, "tcp" | "udp">> = { forward: "tcp", resolver: "udp", egress: "tcp" };

interface Probed {
  /** What stands in the way, for each way that was tried; undefined: nothing. */
  readonly ways: ReadonlyMap<Way, Obstacle | undefined>;
  /** The host has no route to the address: it is offline, and nothing can be said about packets that leave. */
  readonly offline: boolean;
}

export interface ReachProbe {
  /** Makes the link; what an earlier agent process left is replaced. */
  prepare(): Promise<void>;
  /** @param egress whether the egress process runs, so that its way can be tried */
  try(egress: boolean, signal: AbortSignal): Promise<Probed>;
  remove(): Promise<void>;
}

export interface HostProbeOptions {
  /** Where the packets would go. No packet leaves this host for it. */
  readonly address: string;
  /** Path of `svc-network-probe`. */
  readonly sender: () => Promise<string>;
}

type Machine = Pick<Links, "add" | "remove">;
type Rules = Pick<Firewall, "pin" | "open" | "forget">;

export function hostProbe(
  plan: Plan,
  run: RunCommand,
  { links, firewall }: { readonly links: Machine; readonly firewall: Rules },
  { address, sender }: HostProbeOptions,
): ReachProbe {
  const { probe: slot, gateway } = plan;
  const table = probeTable(plan);
  const look = looking(run);
  const send = async () => {
    await look(await sender(), [slot.netnsPath, address, gateway]);
  };
  const listed = () => look("nft", ["-j", "list", "table", "inet", table]).then(readArrived);
  const removeTable = () => run("nft", ["delete", "table", "inet", table]).catch(() => undefined);

  /** What came through of the ways wanted, under both policies. */
  const sendAll = async (wanted: ReadonlySet<Way>, traced: boolean): Promise<ReadonlySet<Way>> => {
    const came = new Set<Way>();
    const round = async (policy: EgressPolicy, ways: readonly Way[]) => {
      const open = ways.filter((way) => wanted.has(way));
      if (open.length === 0) return;
      // A new table, so that its counters are those of this round.
      await run("nft", ["-f", "-"], { input: probeTableText(plan, traced) });
      // Forgotten first: a link keeps from a policy of names that its connections belong to the egress process.
      await firewall.forget(slot);
      await firewall.pin(slot);
      await firewall.open(slot, policy);
      await send();
      for (const waitMs of ARRIVES_WITHIN_MS) {
        await delay(waitMs);
        const arrived = await listed();
        for (const way of open) if (arrived.has(way)) came.add(way);
        if (open.every((way) => came.has(way))) return;
      }
    };
    try {
      await round(OPEN, ["forward", "resolver"]);
      await round(NAMED, ["egress"]);
    } finally {
      await removeTable();
      // The address stays pinned; nothing passes until the next probe.
      await firewall.forget(slot);
    }
    return came;
  };

  /** Sends once more while the kernel reports each rule that the packets meet. */
  const traced = async (wanted: ReadonlySet<Way>, signal: AbortSignal) => {
    const monitor = await listen(signal);
    try {
      const came = await sendAll(wanted, true);
      const deadline = performance.now() + TRACE_LIMIT_MS;
      const read = () => culpritsIn(monitor.text(), { table, address: slot.address });
      let culprits = read();
      // What came through now has no end to wait for.
      while (
        [...wanted].some((way) => !came.has(way) && !culprits.has(PROTOCOLS[way])) &&
        performance.now() < deadline
      ) {
        await delay(TRACE_POLL_MS, undefined, { signal });
        culprits = read();
      }
      return { came, culprits };
    } finally {
      monitor.stop();
    }
  };

  const nameRule = async (culprit: Culprit): Promise<Culprit> => {
    const { family, table: name, chain, handle } = culprit;
    if (handle === undefined) return culprit;
    const text = await look("nft", ["-a", "list", "chain", family, name, chain]).catch(() => "");
    return { ...culprit, rule: ruleByHandle(text, handle) };
  };

  const obstacleOf = async (
    way: Way,
    culprits: ReadonlyMap<string, Culprit>,
    device: string | undefined,
  ): Promise<Obstacle> => {
    const setting = way === "forward" ? await forwardingOff([slot.link, device]) : undefined;
    if (setting !== undefined) return { is: "setting", name: setting };
    const found = culprits.get(PROTOCOLS[way]);
    if (found !== undefined) {
      const culprit = await nameRule(found);
      return { is: "rule", culprit, dockerChain: await hasChain(look, "DOCKER-USER") };
    }
    return { is: "unknown", saw: await legacyRules(way, look) };
  };

  return {
    async prepare() {
      await removeTable();
      await links.remove(slot);
      await links.add(slot);
    },

    async try(egress, signal) {
      const route = await routeTo(address);
      const ways: Way[] = [
        ...(route.offline ? [] : ["forward" as const]),
        "resolver",
        ...(egress ? ["egress" as const] : []),
      ];
      const missing = new Set(ways);
      for (const way of await sendAll(missing, false)) missing.delete(way);
      const obstacles = new Map<Way, Obstacle | undefined>(ways.map((way) => [way, undefined]));
      if (missing.size > 0) {
        // One at a time: both policies send a connection, and the trace names packets by their protocol.
        for (const way of missing) {
          const again = await traced(new Set([way]), signal);
          if (!again.came.has(way)) obstacles.set(way, await obstacleOf(way, again.culprits, route.device));
        }
      }
      const replies = obstacles.get("forward") === undefined ? await forwardingOff([route.device]) : undefined;
      if (!route.offline && replies !== undefined) obstacles.set("forward", { is: "setting", name: replies });
      return { ways: obstacles, offline: route.offline };
    },

    async remove() {
      await removeTable();
      await firewall.forget(slot);
      await links.remove(slot);
    },
  };

  /** The link over which a packet to the address would leave. The lookup is that of a packet of the probe. */
  async function routeTo(to: string): Promise<{ readonly offline: boolean; readonly device: string | undefined }> {
    const text = await look("ip", ["route", "get", to, "mark", String(PERMITTED_MARK)]).catch(() => "");
    const device = / dev (\S+)/.exec(text)?.[1];
    return { offline: device === undefined || device === "lo", device };
  }

  async function listen(signal: AbortSignal) {
    const child = spawn("nft", ["monitor", "trace"], {
      stdio: ["ignore", "pipe", "ignore"],
      signal,
      killSignal: "SIGKILL",
    });
    let text = "";
    child.once("error", () => undefined);
    child.stdout.on("data", (chunk: Buffer) => {
      if (text.length < MAX_TRACE_CHARACTERS) text += chunk.toString("utf8");
    });
    const gone = once(child, "close").catch(() => undefined);
    // nft says nothing when it listens; its socket is in the kernel's list then.
    const deadline = performance.now() + LISTEN_LIMIT_MS;
    while (child.pid !== undefined && performance.now() < deadline && !(await hearsNftables(child.pid)))
      await delay(10);
    return {
      text: () => text,
      stop: () => {
        child.kill("SIGKILL");
        void gone;
      },
    };
  }
}

const NETLINK_NETFILTER = 12;

/** Whether the process has a netlink socket that is a member of a group of nf_tables. */
async function hearsNftables(pid: number): Promise<boolean> {
  const lines = (await readFile(`/proc/${pid}/net/netlink`, "utf8").catch(() => "")).split("\n");
  return lines.some((line) => {
    const [, protocol, port, groups = "0"] = line.trim().split(/\s+/);
    return Number(protocol) === NETLINK_NETFILTER && Number(port) === pid && Number.parseInt(groups, 16) !== 0;
  });
}

/** The first setting that keeps packets of one of these links from being forwarded. */
async function forwardingOff(links: readonly (string | undefined)[]): Promise<string | undefined> {
  const names = [
    "net.ipv4.ip_forward",
    ...links.flatMap((link) => (link === undefined ? [] : [`net.ipv4.conf/${link}/forwarding`])),
  ];
  for (const name of names) {
    const path = name.startsWith("net.ipv4.conf/")
      ? name.replace("net.ipv4.conf/", "net/ipv4/conf/")
      : name.replaceAll(".", "/");
    if ((await readFile(`/proc/sys/${path}`, "utf8").catch(() => "1")).trim() === "0") return name.replaceAll("/", ".");
  }
  return undefined;
}

async function hasChain(look: RunCommand, chain: string): Promise<boolean> {
  return look("iptables", ["-w", "5", "-S", chain]).then(
    () => true,
    () => false,
  );
}

/** Rules of the older tables, which no trace of nftables shows. */
async function legacyRules(way: Way, look: RunCommand): Promise<string> {
  const nothing = "no rule of nftables ends it, and IPv4 forwarding is on";
  const tables = (await readFile("/proc/net/ip_tables_names", "utf8").catch(() => "")).split("\n").filter(Boolean);
  const chain = way === "forward" ? "FORWARD" : "INPUT";
  for (const table of tables) {
    const rules = await look("iptables-legacy", ["-w", "5", "-t", table, "-S", chain]).catch(() => "");
    const drop = rules.split("\n").find((line) => /^-P \S+ DROP|-j (DROP|REJECT)\b/.test(line));
    if (drop === undefined) continue;
    const rule = drop.startsWith("-P") ? "policy drop" : drop;
    return culpritText({ family: "ip (iptables-legacy)", table, chain, rule, handle: undefined });
  }
  return nothing;
}

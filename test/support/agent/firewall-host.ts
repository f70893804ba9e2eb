/**
 * A node's firewall and links as a program in a network namespace of its own. `ip netns exec <name>` starts it, and a test
 * sends it orders over a channel. It changes nothing in the machine's own network.
 */

import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../../agent/host/command.ts";
import { nativeProgram } from "../../../agent/host/native-program.ts";
import { planNetwork } from "../../../agent/network/addresses.ts";
import { type Firewall, hostFirewall } from "../../../agent/network/firewall.ts";
import { hostLinks } from "../../../agent/network/links.ts";
import { findingOf } from "../../../agent/network/reach/findings.ts";
import { hostProbe } from "../../../agent/network/reach/host-probe.ts";
import { createLog } from "../../../shared/program/log.ts";
import { type Loop, loop } from "../../../shared/program/loop.ts";
import { CONNECTIONS, EGRESS_PORT, NETWORK, type Order, PROBED, SUBNET } from "./firewall-orders.ts";

const plan = planNetwork(NETWORK, SUBNET);
const programs = join(tmpdir(), `firewall-${process.pid}`);
const links = hostLinks(plan, runCommand);
const firewall: Firewall = hostFirewall(plan, runCommand, {
  egressPort: () => Promise.resolve(EGRESS_PORT),
  connections: CONNECTIONS,
  watcher: () => nativeProgram(runCommand, "network/svc-table-watch", programs),
  unread: (error) => console.error(error.message),
});
const counts = { repaired: 0, noticed: 0, host: 0 };
const probe = hostProbe(
  plan,
  runCommand,
  { links, firewall },
  { address: PROBED, sender: () => nativeProgram(runCommand, "network/svc-network-probe", programs) },
);
const log = createLog({ component: "test", level: "silent" });
const watching = { loop: undefined as Loop | undefined };

function enter(slot: number, command: readonly string[]): string[] {
  return slot === 0 ? [...command] : ["nsenter", `--net=${plan.slot(slot).netnsPath}`, ...command];
}

// Watches as the agent does: one look at a time, and one more look after changes in between.
function watch(): void {
  watching.loop = loop({ name: "firewall", everyMs: 3_600_000, log }, async () => {
    if ((await firewall.repair()).length > 0) counts.repaired++;
  });
  firewall.watch({
    table: () => {
      counts.noticed++;
      watching.loop?.wake();
    },
    host: () => void counts.host++,
  });
}

async function unwatch(): Promise<void> {
  await watching.loop?.stop();
}

async function tryWays(egress: boolean): Promise<unknown> {
  const { ways, offline } = await probe.try(egress, AbortSignal.timeout(20_000));
  const said = [...ways].map(([way, obstacle]) => [
    way,
    obstacle === undefined ? "passes" : findingOf(way, obstacle, plan),
  ]);
  return { offline, ways: Object.fromEntries(said) as unknown };
}

const acts: { readonly [Act in Order["do"]]: (order: Extract<Order, { do: Act }>) => unknown } = {
  async add({ slot }) {
    await links.add(plan.slot(slot));
    return firewall.pin(plan.slot(slot));
  },
  open: ({ slot, policy }) => firewall.open(plan.slot(slot), policy),
  close: ({ slot }) => firewall.close(plan.slot(slot)),
  forget: ({ slot }) => firewall.forget(plan.slot(slot)),
  async rebuild({ open }) {
    await links.prepare();
    return firewall.rebuild(
      Object.entries(open).map(([slot, policy]) => {
        const { link, address } = plan.slot(Number(slot));
        return { link, address, policy };
      }),
    );
  },
  repair: async () => (await firewall.repair()).length > 0,
  restored: () => firewall.repair(),
  prepareProbe: () => probe.prepare(),
  probe: ({ egress }) => tryWays(egress),
  counts: () => counts,
  async decisions() {
    const { flows, unlogged } = await firewall.decisions();
    return { flows, unlogged: [...unlogged] };
  },
  watch: () => watch(),
  unwatch: () => unwatch(),
  hostServer: () => listen(9_000, (socket) => socket.end("host")),
  run({ slot, command }) {
    const [program = "", ...parameters] = enter(slot, command);
    return runCommand(program, parameters, { timeoutMs: 30_000 });
  },
  async start({ slot, command }) {
    const [program = "", ...parameters] = enter(slot, command);
    const child = spawn(program, parameters, { stdio: ["ignore", "pipe", "inherit"] });
    // The order ends at the program's first output.
    await new Promise((resolve) => child.stdout.once("data", resolve));
    return child.pid;
  },
};

async function carryOut(order: Order): Promise<unknown> {
  const act = acts[order.do] as (order: Order) => unknown;
  return act(order);
}

function listen(port: number, take: (socket: Socket) => void): Promise<void> {
  return new Promise((resolve) => {
    const server = createServer((socket) => {
      socket.on("error", () => socket.destroy());
      take(socket);
    });
    server.listen(port, "0.0.0.0", () => resolve());
  });
}

process.on("message", ({ id, order }: { id: number; order: Order }) => {
  const begun = performance.now();
  carryOut(order).then(
    (result) => process.send?.({ id, result, ms: performance.now() - begun }),
    (error: unknown) => process.send?.({ id, error: String(error) }),
  );
});
process.once("disconnect", () => {
  firewall.stop();
  rmSync(programs, { recursive: true, force: true });
  process.exit(0);
});

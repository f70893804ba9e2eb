/** A node with the firewall, two sandboxes and an internet, each a network namespace of its own. */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { type EgressPolicy, OPEN } from "../../../shared/policy/egress-policy.ts";
import { NETWORKS } from "../internet/plan.ts";
import { CONNECTIONS, EGRESS_PORT, NETWORK, type Order, SUBNET } from "./firewall-orders.ts";

const run = promisify(execFile);
const NODE = "fwnode";
const WORLD = "fwworld";
/** The node's own address, in the second network like `ALLOWED`. */
export const NODE_ADDRESS = "198.51.100.129";
export const ALLOWED = "198.51.100.130";
/** An address in the first network. */
export const OTHER = "198.51.100.2";
export const PRIVATE = "10.77.0.1";
export const PORT = 8080;
export const GATEWAY = "10.218.0.1";

/** The world's servers: echoes over TCP and UDP. */
const SERVER = `
import socket, threading
def tcp():
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("0.0.0.0", ${PORT})); s.listen(200)
    while True:
        c, _ = s.accept(); threading.Thread(target=echo, args=(c,), daemon=True).start()
def echo(c):
    try:
        while True:
            d = c.recv(4096)
            if not d: break
            c.send(d)
    except OSError: pass
    c.close()
threading.Thread(target=tcp, daemon=True).start()
def udp(address):
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind((address, ${PORT}))
    while True:
        d, a = u.recvfrom(4096); u.sendto(d, a)
for address in ("${ALLOWED}", "${OTHER}", "${PRIVATE}"): threading.Thread(target=udp, args=(address,), daemon=True).start()
print("ready", flush=True); threading.Event().wait()
`;
/**
 * The egress process's use of its socket, as far as the kernel is concerned: it answers with the destination of the
 * connection.
 */
const EGRESS = `
import socket, threading
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.setsockopt(socket.SOL_IP, 19, 1)
s.bind(("${GATEWAY}", ${EGRESS_PORT})); s.listen(200); print("ready", flush=True)
def echo(c):
    try:
        while True:
            d = c.recv(4096)
            if not d: break
            c.send(("%s:%d " % c.getsockname()).encode() + d)
    except OSError: pass
while True:
    c, _ = s.accept(); threading.Thread(target=echo, args=(c,), daemon=True).start()
`;
const TRY = `
import socket, sys
kind, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM); s.settimeout(float(sys.argv[4]))
try:
    s.connect((host, port)); s.send(b"hello"); print(s.recv(100).decode())
except socket.timeout: print("silence")
except OSError as e: print({111: "refused", 104: "refused", 113: "prohibited"}.get(e.errno, "failed %d" % e.errno))
`;
/** Makes two exchanges over one connection, the second one after a line comes in. */
const TALK = `
import socket, sys, os
s = socket.socket(); s.settimeout(15); s.connect((sys.argv[1], ${PORT})); s.send(b"one"); first = s.recv(100)
print(first.decode(), flush=True)
import time
while not os.path.exists(sys.argv[2]): time.sleep(0.01)
try:
    s.send(b"two"); print(s.recv(100).decode() or "closed")
except socket.timeout: print("silence")
except OSError: print("cut")
`;

/** Python programs for a sandbox. */
export const PROGRAMS = {
  /** Exchanges datagrams for two seconds, and until there were many; prints that, and how many were lost. */
  ping: `
import socket, sys, time
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(10); lost = sent = 0; end = time.time() + 2
while time.time() < end or sent <= 100:
    sent += 1
    try:
        u.sendto(b"x", ("${ALLOWED}", ${PORT})); u.recv(10)
    except OSError: lost += 1
print(sent > 100, lost)
`,
  /** Opens more connections than a sandbox may have; prints how many it got, and how many were refused. */
  hold: `
import socket, time
held, refused = [], 0
for i in range(${CONNECTIONS + 4}):
    s = socket.socket(); s.settimeout(1)
    try:
        s.connect(("${OTHER}", ${PORT})); held.append(s)
    except OSError: refused += 1
print(len(held), refused, flush=True); time.sleep(1.5)
`,
  /** Begins a conversation with the resolver from each of 8 000 ports. */
  crowd: `
import socket
for port in range(20000, 28000):
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    u.bind(("", port)); u.sendto(b"x", ("${GATEWAY}", 53)); u.close()
`,
  /** Sends datagrams to a denied address for twelve seconds, as fast as it can; prints their number. */
  pour: `
import socket, time
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); sent = 0; end = time.time() + 12
while time.time() < end:
    sent += 1
    try: u.sendto(b"x", ("${OTHER}", 7))
    except OSError: pass
print(sent)
`,
  /** Sends a datagram to each of many ports of a denied address. */
  flood: `
import socket
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in range(1000, 1400):
    try: u.sendto(b"x", ("${PRIVATE}", port))
    except OSError: pass
`,
};

interface Answer {
  readonly result: unknown;
  readonly ms: number;
}

export interface FirewallBench {
  readonly order: (what: Order) => Promise<Answer>;
  /** Returns the output of a command in the namespace of a slot; slot 0 is the node's own namespace. */
  readonly text: (slot: number, ...command: string[]) => Promise<string>;
  /** What an attempt gets within a moment, for those that get nothing. */
  readonly reach: (slot: number, kind: "tcp" | "udp", address: string, port?: number) => Promise<string>;
  /** What an attempt gets that is answered or refused, however busy the machine is. */
  readonly answer: (slot: number, kind: "tcp" | "udp", address: string, port?: number) => Promise<string>;
  readonly open: (slot: number, policy: EgressPolicy) => Promise<Answer>;
  /** Counts the packets that arrived in the world with a sandbox's address, or masqueraded. */
  readonly arrived: () => Promise<number>;
  /** Returns the watcher's counts: calls after a change by another program, and restored tables. */
  readonly counts: () => Promise<{ noticed: number; repaired: number; host: number }>;
  readonly decisions: () => Promise<{ flows: Record<string, unknown>[]; unlogged: [string, number][] }>;
  readonly startEgress: () => Promise<void>;
  readonly stopEgress: () => void;
  /**
   * Sends "one" over a connection, then "two" after `meanwhile`, and returns the two results. `established` is for servers
   * outside the world.
   */
  readonly talk: (
    slot: number,
    address: string,
    meanwhile: () => Promise<unknown>,
    established?: () => Promise<boolean>,
  ) => Promise<string[]>;
}

/** Makes a node with two sandboxes and the world for the tests of a file; both sandboxes are open when a test begins. */
export function firewallBench(): FirewallBench {
  const state = { host: undefined as ChildProcess | undefined, id: 0 };
  const waiting = new Map<number, (answer: { result: unknown; ms: number; error?: string }) => void>();

  const order = async (what: Order): Promise<{ result: unknown; ms: number }> => {
    const id = state.id++;
    const answer = new Promise<{ result: unknown; ms: number; error?: string }>((resolve) => waiting.set(id, resolve));
    state.host?.send({ id, order: what });
    const { error, ...rest } = await answer;
    if (error !== undefined) throw new Error(error);
    return rest;
  };
  const text = async (slot: number, ...command: string[]) =>
    String((await order({ do: "run", slot, command })).result).trim();
  const reach = (slot: number, kind: "tcp" | "udp", address: string, port = PORT) =>
    text(slot, "python3", "-c", TRY, kind, address, String(port), "0.7");
  const answer: FirewallBench["answer"] = (slot, kind, address, port = PORT) =>
    text(slot, "python3", "-c", TRY, kind, address, String(port), "20");
  const open = (slot: number, policy: EgressPolicy) => order({ do: "open", slot, policy });
  /** Counts the packets that arrived in the world with a sandbox's address, or masqueraded. */
  const arrived = async () => {
    const { stdout } = await run("ip", ["netns", "exec", WORLD, "nft", "list", "chain", "inet", "count", "arrived"]);
    return Number(/packets (\d+)/.exec(stdout)?.[1]);
  };
  /** Returns the watcher's counts: calls after a change by another program, and restored tables. */
  const counts = async () =>
    (await order({ do: "counts" })).result as { noticed: number; repaired: number; host: number };
  const decisions = async () =>
    (await order({ do: "decisions" })).result as { flows: Record<string, unknown>[]; unlogged: [string, number][] };

  beforeAll(async () => {
    await tidy();
    await run("ip", ["netns", "add", NODE]);
    await run("ip", ["netns", "add", WORLD]);
    await run("ip", ["-n", NODE, "link", "add", "world", "type", "veth", "peer", "name", "eth0", "netns", WORLD]);
    for (const line of [
      "link set lo up",
      "link set world up",
      `address add ${NODE_ADDRESS}/26 dev world`,
      `route add ${NETWORKS.first} via ${ALLOWED}`,
      `route add ${PRIVATE}/32 via ${ALLOWED}`,
    ])
      await run("ip", ["-n", NODE, ...line.split(" ")]);
    for (const line of [
      "link set lo up",
      "link set eth0 up",
      `address add ${ALLOWED}/26 dev eth0`,
      `address add ${OTHER}/32 dev eth0`,
      `address add ${PRIVATE}/32 dev eth0`,
      // The world also counts and answers packets that would come without masquerade.
      `route add ${SUBNET} via ${NODE_ADDRESS}`,
    ])
      await run("ip", ["-n", WORLD, ...line.split(" ")]);
    const counter =
      "add table inet count; add chain inet count arrived { type filter hook prerouting priority 0; }; add rule inet count arrived iifname eth0 ip protocol { tcp, udp } counter";
    await run("ip", ["netns", "exec", WORLD, "nft", counter]);

    const program = new URL("firewall-host.ts", import.meta.url).pathname;
    const host = spawn("ip", ["netns", "exec", NODE, process.execPath, "--import", "tsx", program], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    host.on("message", (message: { id: number; result: unknown; ms: number }) => waiting.get(message.id)?.(message));
    state.host = host;
    await order({ do: "rebuild", open: {} });
    await order({ do: "add", slot: 2 });
    await order({ do: "add", slot: 3 });
    await order({ do: "hostServer" });
    await order({ do: "start", slot: 0, command: ["ip", "netns", "exec", WORLD, "python3", "-c", SERVER] });
  });
  afterAll(async () => {
    state.host?.disconnect();
    await tidy();
  });
  const egress = { pid: 0 };
  const startEgress = async () => {
    egress.pid = Number((await order({ do: "start", slot: 0, command: ["python3", "-c", EGRESS] })).result);
  };
  const stopEgress = () => {
    if (egress.pid > 0) process.kill(egress.pid, "SIGKILL");
    egress.pid = 0;
  };
  afterEach(stopEgress);
  beforeEach(async () => {
    await open(2, OPEN);
    await open(3, OPEN);
  });

  /** Whether the world has a connection to that address. */
  const inWorld = async (address: string) => {
    const { stdout } = await run("ip", ["netns", "exec", WORLD, "ss", "-Htn", "state", "established", "src", address]);
    return stdout.trim() !== "";
  };
  const talk: FirewallBench["talk"] = async (slot, address, meanwhile, established = () => inWorld(address)) => {
    const go = `/tmp/fw-go-${process.pid}-${state.id}`;
    const talking = text(slot, "python3", "-c", TALK, address, go);
    talking.catch(() => undefined);
    await expect.poll(established).toBe(true);
    await meanwhile();
    await run("touch", [go]);
    const said = await talking;
    await run("rm", ["-f", go]);
    return said.split("\n");
  };

  return { order, text, reach, answer, open, arrived, counts, decisions, startEgress, stopEgress, talk };
}

async function tidy(): Promise<void> {
  // Every program sees the namespace's file, but only the node's own program sees the namespace that is mounted on it.
  for (const name of [`${NETWORK}-2`, `${NETWORK}-3`, `${NETWORK}-probe`, NODE, WORLD]) {
    const { stdout } = await run("ip", ["netns", "pids", name]).catch(() => ({ stdout: "" }));
    for (const pid of stdout.split("\n").filter(Boolean)) {
      try {
        process.kill(Number(pid), "SIGKILL");
      } catch {
        // The process ended by itself.
      }
    }
    await run("ip", ["netns", "delete", name]).catch(() => undefined);
  }
}

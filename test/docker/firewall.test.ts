/** The firewall's rules in the kernel: a node, two sandboxes and an internet, each a network namespace of its own. */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CLOSED, type EgressPolicy, OPEN } from "../../shared/policy/egress-policy.ts";
import { CONNECTIONS, EGRESS_PORT, NETWORK, type Order, SUBNET } from "../support/agent/firewall-orders.ts";

const run = promisify(execFile);
const NODE = "fwnode";
const WORLD = "fwworld";
const ALLOWED = "203.0.113.2";
const OTHER = "198.51.100.2";
const PRIVATE = "10.77.0.1";
const PORT = 8080;
const GATEWAY = "10.218.0.1";

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
/** What the egress process does with its socket, as far as the kernel is concerned: says where a connection wanted to go. */
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
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM); s.settimeout(0.7)
try:
    s.connect((host, port)); s.send(b"hello"); print(s.recv(100).decode())
except socket.timeout: print("silence")
except OSError as e: print({111: "refused", 104: "refused", 113: "prohibited"}.get(e.errno, "failed %d" % e.errno))
`;
/** Two exchanges over one connection, the second once a line comes in. */
const TALK = `
import socket, sys, os
s = socket.socket(); s.settimeout(1.5); s.connect((sys.argv[1], ${PORT})); s.send(b"one"); first = s.recv(100)
print(first.decode(), flush=True)
import time
while not os.path.exists(sys.argv[2]): time.sleep(0.01)
try:
    s.send(b"two"); print(s.recv(100).decode() or "closed")
except socket.timeout: print("silence")
except OSError: print("cut")
`;

const ranges = (allow: string[], deny: string[] = ["0.0.0.0/0"]): EgressPolicy => ({
  ...OPEN,
  allowRanges: allow,
  denyRanges: deny,
});
const NAMED: EgressPolicy = { ...CLOSED, allowDomains: ["example.com"] };
const PROXIED: EgressPolicy = { ...OPEN, proxy: { host: "proxy.example", port: 1080 } };

describe("the firewall", () => {
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
    text(slot, "python3", "-c", TRY, kind, address, String(port));
  const open = (slot: number, policy: EgressPolicy) => order({ do: "open", slot, policy });
  /** Packets with an address of the sandboxes, or masqueraded, that came to the world. */
  const arrived = async () => {
    const { stdout } = await run("ip", ["netns", "exec", WORLD, "nft", "list", "chain", "inet", "count", "arrived"]);
    return Number(/packets (\d+)/.exec(stdout)?.[1]);
  };
  /** Counts of the watcher: calls because of a change by another program, and restored tables. */
  const counts = async () => (await order({ do: "counts" })).result as { noticed: number; repaired: number };
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
      "address add 203.0.113.1/24 dev world",
      `route add 198.51.100.0/24 via ${ALLOWED}`,
      `route add ${PRIVATE}/32 via ${ALLOWED}`,
    ])
      await run("ip", ["-n", NODE, ...line.split(" ")]);
    for (const line of [
      "link set lo up",
      "link set eth0 up",
      `address add ${ALLOWED}/24 dev eth0`,
      `address add ${OTHER}/32 dev eth0`,
      `address add ${PRIVATE}/32 dev eth0`,
      // Also what would come without masquerade is counted and answered.
      `route add ${SUBNET} via 203.0.113.1`,
    ])
      await run("ip", ["-n", WORLD, ...line.split(" ")]);
    const counter =
      "add table inet count; add chain inet count arrived { type filter hook prerouting priority 0; }; add rule inet count arrived iifname eth0 ip protocol { tcp, udp } counter";
    await run("ip", ["netns", "exec", WORLD, "nft", counter]);

    const program = new URL("../support/agent/firewall-host.ts", import.meta.url).pathname;
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

  test("an open policy reaches the internet, and nothing else", async () => {
    expect(await reach(2, "tcp", ALLOWED)).toBe("hello");
    expect(await reach(2, "udp", ALLOWED)).toBe("hello");
    expect(await reach(2, "tcp", PRIVATE)).toBe("silence");
    expect(await reach(2, "udp", PRIVATE)).toBe("silence");
    expect(await reach(2, "tcp", ALLOWED, 53)).toBe("silence");
    expect(await reach(2, "tcp", ALLOWED, 853)).toBe("silence");
    for (const address of [GATEWAY, "203.0.113.1", "10.218.0.3"]) {
      expect(await reach(2, "tcp", address, 9_000)).toBe("silence");
    }
    expect(await reach(2, "tcp", GATEWAY, EGRESS_PORT)).toBe("silence");
  });

  test("a closed one, and one that is not open yet, let no packet out", async () => {
    const before = await arrived();
    await open(2, CLOSED);
    expect(await reach(2, "tcp", ALLOWED)).toBe("refused");
    expect(await reach(2, "udp", ALLOWED)).toBe("prohibited");
    await order({ do: "close", slot: 2 });
    expect(await reach(2, "tcp", ALLOWED)).toBe("silence");
    expect(await reach(2, "udp", ALLOWED)).toBe("silence");
    expect(await arrived()).toBe(before);
  });

  test.each<[string, EgressPolicy, { [address: string]: boolean }]>([
    ["allowed among denied", ranges([`${ALLOWED}/32`]), { [ALLOWED]: true, [OTHER]: false }],
    ["allowed range among denied", ranges(["198.51.100.0/24"]), { [ALLOWED]: false, [OTHER]: true }],
    ["denied address", ranges([], [`${ALLOWED}/32`]), { [ALLOWED]: false, [OTHER]: true }],
    ["allowed wins over denied", ranges([`${OTHER}/32`], ["198.51.100.0/24"]), { [ALLOWED]: true, [OTHER]: true }],
    [
      "overlapping",
      ranges(["203.0.113.0/24", "203.0.0.0/16"], ["203.0.0.0/8", "0.0.0.0/0"]),
      { [ALLOWED]: true, [OTHER]: false },
    ],
    ["private stays denied", ranges(["10.0.0.0/8"], []), { [ALLOWED]: true }],
  ])("%s: TCP and UDP", async (_name, policy, expected) => {
    await open(2, policy);
    for (const [address, yes] of Object.entries(expected)) {
      expect(await reach(2, "tcp", address)).toBe(yes ? "hello" : "refused");
      expect(await reach(2, "udp", address)).toBe(yes ? "hello" : "prohibited");
    }
    expect(await reach(2, "tcp", PRIVATE)).toBe("silence");
    // It is a policy of one sandbox.
    expect(await reach(3, "tcp", ALLOWED)).toBe("hello");
  });

  const talk = async (slot: number, address: string, meanwhile: () => Promise<unknown>) => {
    const go = `/tmp/fw-go-${process.pid}-${state.id}`;
    const talking = text(slot, "python3", "-c", TALK, address, go);
    talking.catch(() => undefined);
    await expect.poll(() => established(address)).toBe(true);
    await meanwhile();
    await run("touch", [go]);
    const answer = await talking;
    await run("rm", ["-f", go]);
    return answer.split("\n");
  };
  /** The world has a connection to that address. */
  const established = async (address: string) => {
    const { stdout } = await run("ip", ["netns", "exec", WORLD, "ss", "-Htn", "state", "established", "src", address]);
    return stdout.trim() !== "";
  };

  test("a tightened policy cuts the flow that is open, and leaves the one it allows", async () => {
    expect(await talk(2, ALLOWED, () => open(2, ranges([`${OTHER}/32`])))).toEqual(["one", "cut"]);
    await open(2, OPEN);
    expect(await talk(2, OTHER, () => open(2, ranges([`${OTHER}/32`])))).toEqual(["one", "two"]);
  });

  test("with a policy of names TCP goes to the egress process with its destination, or nowhere; UDP is refused", async () => {
    await open(2, NAMED);
    const before = await arrived();
    expect(await reach(2, "tcp", ALLOWED)).toBe("refused");
    await startEgress();
    expect(await reach(2, "tcp", ALLOWED)).toBe(`${ALLOWED}:${PORT} hello`);
    expect(await reach(2, "tcp", OTHER, 443)).toBe(`${OTHER}:443 hello`);
    expect(await reach(2, "udp", ALLOWED)).toBe("prohibited");
    expect(await reach(2, "tcp", PRIVATE)).toBe("silence");
    expect(await reach(2, "tcp", ALLOWED, 53)).toBe("silence");
    // The host itself stays closed, under all its names, and so does the process's own port.
    for (const address of [GATEWAY, "203.0.113.1"]) expect(await reach(2, "tcp", address, 9_000)).toBe("silence");
    expect(await reach(2, "tcp", GATEWAY, EGRESS_PORT)).toBe("silence");
    expect(await reach(3, "tcp", ALLOWED)).toBe("hello");
    await open(2, PROXIED);
    expect(await reach(2, "tcp", PRIVATE)).toBe(`${PRIVATE}:${PORT} hello`);
    expect(await reach(2, "tcp", "169.254.169.254", 80)).toBe("169.254.169.254:80 hello");
    expect(await reach(2, "udp", PRIVATE)).toBe("silence");
    expect((await arrived()) - before).toBeLessThan(12);
    stopEgress();
    await expect.poll(() => reach(2, "tcp", ALLOWED)).toBe("refused");
  });

  test("connections that the egress process took stay with it when the policy stops steering", async () => {
    await startEgress();
    await open(2, NAMED);
    const go = `/tmp/fw-kept-${process.pid}`;
    const talking = text(2, "python3", "-c", TALK, ALLOWED, go);
    await expect
      .poll(async () => (await text(0, "ss", "-Htn", "state", "established", "src", ALLOWED)).length)
      .toBeGreaterThan(0);
    await open(2, OPEN);
    await run("touch", [go]);
    const mine = `${ALLOWED}:${PORT}`;
    expect(await talking).toBe(`${mine} one
${mine} two`);
    await run("rm", ["-f", go]);
    expect(await reach(2, "tcp", ALLOWED)).toBe("hello");
  });

  test("while the table is gone no packet passes, and the watcher puts it back", async () => {
    await open(2, ranges([`${ALLOWED}/32`]));
    const before = await arrived();
    await text(0, "nft", "flush", "ruleset");
    expect(await reach(2, "tcp", ALLOWED)).not.toBe("hello");
    expect(await reach(2, "udp", ALLOWED)).not.toBe("hello");
    expect(await reach(3, "tcp", OTHER)).not.toBe("hello");
    expect(await arrived()).toBe(before);
    expect((await order({ do: "repair" })).result).toBe(true);
    expect(await reach(2, "tcp", ALLOWED)).toBe("hello");
    expect(await reach(2, "tcp", OTHER)).toBe("refused");
    expect((await order({ do: "repair" })).result).toBe(false);

    await order({ do: "watch" });
    // Until it looks: the first thing that it notices.
    const noticed = async () => {
      await text(0, "nft", "insert", "rule", "inet", NETWORK, "forward", "accept");
      return (await counts()).repaired;
    };
    await expect.poll(noticed, { interval: 200 }).toBeGreaterThan(0);
    await order({ do: "repair" });
    const damage: string[][] = [
      ["nft", "flush", "ruleset"],
      ["nft", "delete", "table", "inet", NETWORK],
      ["nft", "flush", "chain", "inet", NETWORK, "out"],
      ["nft", "insert", "rule", "inet", NETWORK, "forward", "accept"],
      ["nft", "flush", "set", "inet", NETWORK, "allowed"],
      ["nft", "add", "element", "inet", NETWORK, "allowed", `{ 10.218.0.2 . ${OTHER} }`],
    ];
    for (const command of damage) {
      const begun = performance.now();
      await text(0, ...command);
      const rules = () => text(0, "nft", "-s", "list", "table", "inet", NETWORK).catch(() => "");
      const whole = (table: string) =>
        table.includes("goto pass") &&
        !/chain forward \{[^}]*\t\taccept/.test(table) &&
        table.includes(`10.218.0.2 . ${ALLOWED}`) &&
        !table.includes(`10.218.0.2 . ${OTHER}`);
      await expect.poll(rules, { interval: 1, message: command.join(" ") }).toSatisfy(whole);
      const what = command.slice(0, 3).join(" ");
      console.log(`back ${(performance.now() - begun).toFixed(0)} ms after: ${what}`);
      expect(await reach(2, "tcp", OTHER)).toBe("refused");
      expect(await reach(2, "tcp", ALLOWED)).toBe("hello");
      await expect.poll(async () => (await order({ do: "repair" })).result).toBe(false);
    }
    // Of changes of its own it takes no notice; neither does it of other tables.
    const noticings = async () => (await counts()).noticed;
    // The last repair is noticed too, by a watcher that may be late: the count stands still before it is compared.
    const still = { at: -1, since: 0 };
    const standsStill = async () => {
      const at = await noticings();
      if (at !== still.at) Object.assign(still, { at, since: performance.now() });
      return performance.now() - still.since;
    };
    await expect.poll(standsStill, { timeout: 30_000, interval: 100 }).toBeGreaterThan(2_000);
    const seen = still.at;
    for (let round = 0; round < 5; round++) {
      await order({ do: "close", slot: 3 });
      await open(3, ranges([`${ALLOWED}/32`]));
    }
    await text(0, "nft", "add", "table", "inet", "stranger");
    for (const [times, verb] of ["add", "delete"].entries()) {
      await text(0, "nft", verb, "set", "inet", NETWORK, "unused", ...(verb === "add" ? ["{ type ipv4_addr; }"] : []));
      await expect.poll(noticings).toBe(seen + times + 1);
    }
    await order({ do: "unwatch" });
  });

  test.each(["steered", "allowed"])(
    "while the set %s is empty nobody may do more than before, and it is filled again",
    async (set) => {
      await open(2, NAMED);
      await open(3, ranges([], [`${OTHER}/32`]));
      const before = await arrived();
      await text(0, "nft", "flush", "set", "inet", NETWORK, set);
      expect(await reach(2, "udp", ALLOWED)).not.toBe("hello");
      expect(await reach(2, "tcp", ALLOWED)).not.toBe("hello");
      expect(await reach(3, "udp", OTHER)).not.toBe("hello");
      expect(await arrived()).toBe(before);
      expect((await order({ do: "repair" })).result).toBe(true);
      expect(await reach(3, "udp", ALLOWED)).toBe("hello");
    },
  );

  test("a slot that is removed from the set of open slots may reach nothing", async () => {
    const before = await arrived();
    await text(0, "nft", "flush", "set", "inet", NETWORK, "free");
    expect(await reach(2, "tcp", ALLOWED)).toBe("refused");
    expect(await reach(2, "udp", ALLOWED)).toBe("prohibited");
    expect(await arrived()).toBe(before);
    expect((await order({ do: "repair" })).result).toBe(true);
    expect(await reach(2, "udp", ALLOWED)).toBe("hello");
  });

  test("the always-denied ranges cannot be removed without their rule", async () => {
    expect(await text(0, "nft", "list", "sets", "inet")).not.toContain("10.0.0.0");
  });

  test.each([
    ["flush", "set", "inet", NETWORK, "allowed"],
    ["add", "element", "inet", NETWORK, "allowed", `{ 10.218.0.2 . ${OTHER} }`],
    ["delete", "element", "inet", NETWORK, "pinned", '{ "fw-3" . 10.218.0.3 }'],
  ])("what else was changed is found by comparison: nft %s %s", async (...command) => {
    await open(2, ranges([`${ALLOWED}/32`]));
    await text(0, "nft", ...command);
    expect((await order({ do: "repair" })).result).toBe(true);
    expect(await reach(2, "tcp", OTHER)).toBe("refused");
    expect(await reach(3, "tcp", OTHER)).toBe("hello");
  });

  test("rules of the routing policy are put back, too", async () => {
    await text(0, "ip", "rule", "delete", "pref", "7001");
    expect((await order({ do: "repair" })).result).toBe(true);
    expect(await text(0, "ip", "rule")).toContain("7001:\tfrom 10.218.0.0/24 fwmark 0/0x10000000 blackhole");
  });

  test("a thousand ranges are replaced in one transaction, quickly", async () => {
    const many = (from: number) =>
      Array.from({ length: 1_000 }, (_, i) => `${from + Math.floor(i / 250)}.${i % 250}.0.0/24`);
    await open(2, ranges([...many(20), `${ALLOWED}/32`]));
    // While packets are sent all the time: none of them meets a policy that is neither the old nor the new one.
    const PING = `
import socket, sys, time
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(0.5); lost = sent = 0; end = time.time() + 2
while time.time() < end:
    sent += 1
    try:
        u.sendto(b"x", ("${ALLOWED}", ${PORT})); u.recv(10)
    except OSError: lost += 1
print(sent > 100, lost)
`;
    const pinging = text(2, "python3", "-c", PING);
    const times: number[] = [];
    for (let round = 0; round < 4; round++) {
      times.push((await open(2, ranges([...many(round % 2 === 0 ? 120 : 20), `${ALLOWED}/32`]))).ms);
    }
    expect(await pinging).toBe("True 0");
    console.log(`1 000 ranges replaced by 1 000 others: ${times.map((ms) => ms.toFixed(0)).join(", ")} ms`);
    expect(Math.min(...times)).toBeLessThan(5_000);
    expect(await reach(2, "tcp", ALLOWED)).toBe("hello");
    expect(await reach(2, "tcp", OTHER)).toBe("refused");
    const plain = [];
    for (let round = 0; round < 20; round++) {
      await order({ do: "close", slot: 3 });
      plain.push((await open(3, OPEN)).ms);
    }
    console.log(`an open policy: ${plain.toSorted((a, b) => a - b)[10]?.toFixed(2)} ms`);
  });

  test("a sandbox at its limit of connections does not affect its neighbour", async () => {
    const HOLD = `
import socket, time
held, refused = [], 0
for i in range(${CONNECTIONS + 4}):
    s = socket.socket(); s.settimeout(1)
    try:
        s.connect(("${OTHER}", ${PORT})); held.append(s)
    except OSError: refused += 1
print(len(held), refused, flush=True); time.sleep(1.5)
`;
    const holding = text(3, "python3", "-c", HOLD);
    expect(await reach(2, "tcp", OTHER)).toBe("hello");
    const [held, refused] = (await holding).split(" ").map(Number);
    expect(held).toBeLessThanOrEqual(CONNECTIONS);
    expect(refused).toBeGreaterThanOrEqual(4);
    expect((held ?? 0) + (refused ?? 0)).toBe(CONNECTIONS + 4);
    const { flows } = await decisions();
    expect(flows).toContainEqual(expect.objectContaining({ source: "10.218.0.3", address: OTHER, outcome: "crowded" }));
  });

  test("each decision is reported once, with destination and count", async () => {
    await decisions();
    await open(2, ranges([`${ALLOWED}/32`]));
    await reach(2, "tcp", ALLOWED);
    await reach(2, "udp", ALLOWED);
    await reach(2, "tcp", OTHER, 81);
    await reach(2, "udp", PRIVATE, 82);
    const { flows } = await decisions();
    const mine = flows.filter(({ source }) => source === "10.218.0.2").map((flow) => ({ ...flow, source: undefined }));
    expect(mine).toHaveLength(4);
    expect(mine).toEqual(
      expect.arrayContaining([
        { address: ALLOWED, protocol: "tcp", port: PORT, outcome: "allowed", count: 1 },
        { address: ALLOWED, protocol: "udp", port: PORT, outcome: "allowed", count: 1 },
        { address: OTHER, protocol: "tcp", port: 81, outcome: "denied", count: 1 },
        { address: PRIVATE, protocol: "udp", port: 82, outcome: "denied", count: 1 },
      ]),
    );
    expect((await decisions()).flows).toEqual([]);
    const FLOOD = `
import socket
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in range(1000, 1400):
    try: u.sendto(b"x", ("${PRIVATE}", port))
    except OSError: pass
`;
    await text(2, "python3", "-c", FLOOD);
    const flood = await decisions();
    expect(flood.flows.length).toBeLessThan(200);
    expect(flood.unlogged.find(([source]) => source === "10.218.0.2")?.[1]).toBeGreaterThan(200);
  });

  test("a forgotten slot leaves no element in any set", async () => {
    await open(3, ranges([`${ALLOWED}/32`]));
    await order({ do: "forget", slot: 3 });
    expect(await text(0, "nft", "list", "table", "inet", NETWORK)).not.toMatch(
      /"fw-3"|10\.218\.0\.3 \. [\d./-]+[,\n ]*\}?\n\t\}\n\n\tset granted/,
    );
    expect(await reach(3, "tcp", ALLOWED)).toBe("silence");
    expect((await order({ do: "repair" })).result).toBe(false);
  });

  test("its rules are as many with a policy as without", async () => {
    const rules = async () => (await text(0, "nft", "-a", "list", "table", "inet", NETWORK)).match(/# handle/g)?.length;
    const before = await rules();
    await open(2, ranges([`${ALLOWED}/32`]));
    expect(await rules()).toBe(before);
    expect(await readFile("/proc/net/dev", "utf8")).not.toContain("fw-2");
  });
});

async function tidy(): Promise<void> {
  // The file is there for everybody, although only the node's own program sees what is mounted on it.
  for (const name of [`${NETWORK}-2`, `${NETWORK}-3`, NODE, WORLD]) {
    const { stdout } = await run("ip", ["netns", "pids", name]).catch(() => ({ stdout: "" }));
    for (const pid of stdout.split("\n").filter(Boolean)) {
      try {
        process.kill(Number(pid), "SIGKILL");
      } catch {
        // It ended by itself.
      }
    }
    await run("ip", ["netns", "delete", name]).catch(() => undefined);
  }
}

/** Things that a sandbox must not be able to do, tried from inside as root and as the user. */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Started } from "../../../shared/agent-api/routes.ts";
import { CLOSED } from "../../../shared/policy/egress-policy.ts";
import { GATEWAY, inside, NETWORK, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";

const run = promisify(execFile);

/** Results that mean a refusal or an absent thing; any other result means that the attempt succeeded. */
const HARMLESS =
  /^(E(PERM|ACCES|NOSYS|ROFS|AFNOSUPPORT|PROTONOSUPPORT|NOENT|NXIO|IO|ISDIR|CONNREFUSED)|did it: nothing in it)$/;

describe("isolation", () => {
  let agent: RealAgent;
  let sandbox: Started;
  beforeAll(async () => {
    agent = await realAgent();
    sandbox = await agent.start();
  });
  afterAll(() => agent.close());

  test.each(["root", "user"])("nothing of the list can be done as %s", async (user) => {
    const probe = await readFile(new URL("../../support/sandbox/isolation-probe.py", import.meta.url), "utf8");
    const { code, output } = await inside(sandbox.sandboxId, user, "python3", "-c", probe);
    expect(code, output).toBe(0);
    const { "envd found": found, ...results } = JSON.parse(output) as Record<string, string>;
    expect(found).toBe("True");
    expect(Object.keys(results).length).toBeGreaterThan(50);
    const done = Object.entries(results).filter(([, result]) => !HARMLESS.test(result));
    expect(Object.fromEntries(done)).toEqual({});
    // A call that a program can do without must look absent to the program, and not forbidden.
    expect(results).toMatchObject({ io_uring_setup: "ENOSYS", clone3: "ENOSYS", "alg socket": "EAFNOSUPPORT" });
  });

  test("sudo, changing owners and installing files work", async () => {
    const script =
      "set -e; sudo -n id -u; sudo install -o user -g user /etc/hostname /tmp/mine; sudo chown root /tmp/mine; stat -c %U /tmp/mine; sudo rm /tmp/mine; getent hosts sandbox";
    const { code, output } = await inside(sandbox.sandboxId, "user", "sh", "-c", script);
    expect(output).toMatch(/^0\nroot\n127\.0\.1\.1\s+sandbox/);
    expect(code).toBe(0);
  });

  test("memory, processes, files and shared memory have limits, and core files are never written", async () => {
    const { output } = await inside(
      sandbox.sandboxId,
      "root",
      "sh",
      "-c",
      "cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null; ulimit -c; df -m /dev/shm | tail -1 | awk '{print $2}'",
    );
    expect(output.split("\n").slice(0, 3)).toEqual(["4096", "0", "64"]);
    const bomb = await inside(sandbox.sandboxId, "root", "python3", "-c", "x = bytearray(400 * 1024 * 1024)");
    expect(bomb.code).toBe(137);
    // The kernel killed the process that asked for too much memory; the sandbox runs on.
    const response = await fetch(`http://${sandbox.address}:49983/health`);
    expect(response.status).toBe(204);
    expect(agent.exits).toEqual([]);
  });

  test("envd's internal routes need their token", async () => {
    const init = await fetch(`http://${sandbox.address}:49983/init`, { method: "POST", body: "{}" });
    expect(init.status).toBe(401);
  });
});

/** Both ends of the link to the namespace that plays the world, in the third network of `support/internet/plan.ts`. */
const HOST = "198.51.100.193";
const INTERNET = "198.51.100.194";
const LINK_LOCAL = "169.254.77.77";
const CLOUD_METADATA = "168.63.129.16";
const PRIVATE = "10.77.0.1";
const NOWHERE = /^(silence|failed \d+)$/;
const PORT = 8080;
const NAMESPACE = "agentworld";
/** An attempt that is answered or refused is, however busy the machine is; those that get nothing wait for a moment only. */
const ANSWERED = { seconds: 20 };

const SERVER = `
const http = require("node:http"), dgram = require("node:dgram"), net = require("node:net");
http.createServer((q, r) => r.end(q.socket.remoteAddress)).listen(${PORT}, "0.0.0.0");
net.createServer((s) => s.end("dns")).listen(53, "0.0.0.0");
const udp = dgram.createSocket("udp4");
udp.on("message", (m, from) => udp.send(m, from.port, from.address));
udp.bind(${PORT}, "0.0.0.0", () => console.log("ready"));
`;

const TRY = `
import socket, sys
kind, host, port, source = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
s.settimeout(float(sys.argv[5]))
try:
    if source: s.bind((source, 0))
    s.connect((host, port))
    if kind == "udp":
        s.send(b"hello")
        s.recv(100)
    print("reached")
except socket.timeout:
    print("silence")
except OSError as error:
    print("refused" if error.errno == 111 else f"failed {error.errno}")
`;

describe("the network of a sandbox", () => {
  let agent: RealAgent;
  let open: Started;
  let other: Started;
  let closed: Started;
  const host = createServer((socket) => socket.destroy());
  const world = { stop: () => undefined as unknown };

  beforeAll(async () => {
    await makeWorld();
    const server = spawn("ip", ["netns", "exec", NAMESPACE, process.execPath, "-e", SERVER], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    world.stop = () => server.kill("SIGKILL");
    await once(server.stdout, "data");
    host.listen(PORT + 1, "0.0.0.0");
    await once(host, "listening");
    agent = await realAgent();
    [open, other] = [await agent.start(), await agent.start()];
    closed = await agent.start({ egress: CLOSED });
  });
  afterAll(async () => {
    await agent.close();
    host.close();
    world.stop();
    await removeWorld();
  });

  const reach = async (
    from: Started,
    kind: "tcp" | "udp",
    address: string,
    more: { port?: number; source?: string; seconds?: number } = {},
  ) => {
    const parameters = [kind, address, String(more.port ?? PORT), more.source ?? "", String(more.seconds ?? 1.5)];
    const { output } = await inside(from.sandboxId, "root", "python3", "-c", TRY, ...parameters);
    return output.trim();
  };

  test("the internet is reached over TCP and UDP, under the host's address", async () => {
    expect(await reach(open, "tcp", INTERNET, ANSWERED)).toBe("reached");
    expect(await reach(open, "udp", INTERNET, ANSWERED)).toBe("reached");
    const { output } = await inside(open.sandboxId, "user", "curl", "-s", `http://${INTERNET}:${PORT}/`);
    expect(output).toBe(HOST);
  });

  test.each([LINK_LOCAL, CLOUD_METADATA, PRIVATE])("%s is never reached", async (address) => {
    expect(await reach(open, "tcp", address)).toBe("silence");
    expect(await reach(open, "udp", address)).toBe("silence");
  });

  test("no other resolver is reached", async () => {
    expect(await reach(open, "tcp", INTERNET, { port: 53 })).toBe("silence");
    expect(await reach(open, "udp", INTERNET, { port: 53 })).toBe("silence");
  });

  test("another sandbox is not reached, not even its envd", async () => {
    expect(await reach(open, "tcp", other.address, { port: 49_983 })).toBe("silence");
    expect(await reach(other, "udp", open.address)).toBe("silence");
  });

  test("no address of the host is reached, except the resolver", async () => {
    for (const address of [GATEWAY, HOST, "172.17.0.1"]) {
      expect(await reach(open, "tcp", address, { port: PORT + 1 })).toBe("silence");
      expect(await reach(open, "tcp", address, { port: Number(new URL(agent.url).port) })).toBe("silence");
    }
    expect(await reach(open, "tcp", GATEWAY, { port: 53, ...ANSWERED })).toBe("reached");
  });

  test("packets with a source address of another sandbox reach nothing", async () => {
    expect(await reach(open, "udp", INTERNET, { source: other.address })).toMatch(NOWHERE);
    expect(await reach(open, "tcp", INTERNET, { source: "198.51.100.205" })).toMatch(NOWHERE);
    // A closed sandbox does not become open by a borrowed address either.
    expect(await reach(closed, "udp", INTERNET, { source: open.address })).toMatch(NOWHERE);
  });

  test("without internet access nothing is reached", async () => {
    expect(await reach(closed, "tcp", INTERNET, ANSWERED)).toBe("refused");
    expect(await reach(closed, "udp", INTERNET, ANSWERED)).toBe("failed 113");
    await expect
      .poll(async () => {
        const query = { limit: 10 };
        const { entries } = await agent.call.networkLog({ params: { sandboxId: closed.sandboxId }, query });
        return entries.map(({ address, verdict, rule }) => `${address} ${verdict} ${rule}`);
      })
      .toContain(`${INTERNET} deny denyOut 0.0.0.0/0`);
    expect((await fetch(`http://${closed.address}:49983/health`)).status).toBe(204);
  });

  test("another network policy is in force at once, and is kept", async () => {
    const params = { executionId: closed.executionId };
    const allowed = { ...CLOSED, allowRanges: [`${INTERNET}/32`] };
    await agent.call.replaceEgress({ params, body: allowed });
    expect(await reach(closed, "tcp", INTERNET, ANSWERED)).toBe("reached");
    const query = { host: INTERNET, port: PORT, protocol: "tcp" as const };
    expect(await agent.call.checkNetwork({ params, query })).toMatchObject({
      verdict: "allow",
      rule: `allowOut ${INTERNET}/32`,
    });
    await agent.call.replaceEgress({ params, body: CLOSED });
    expect(await reach(closed, "tcp", INTERNET, ANSWERED)).toBe("refused");
    const nobody = { executionId: "00000000-0000-4000-8000-000000000000" };
    await expect(agent.call.replaceEgress({ params: nobody, body: CLOSED })).rejects.toMatchObject({ status: 404 });
  });

  test("a sandbox has no IPv6 address except its own ::1", async () => {
    const script = "ip -6 -oneline address; ip -6 route show table all";
    const { output } = await inside(open.sandboxId, "root", "sh", "-c", script);
    const lines = output.trim().split("\n");
    expect(lines.filter((line) => !/\bdev lo\b|^\d+: lo\b/.test(line))).toEqual([]);
    expect(output).toContain("inet6 ::1/128");
    expect(await reach(open, "tcp", "fd00::2")).toMatch(/^failed/);
  });

  test("while the agent is dead, established rules hold and nothing new opens", async () => {
    await agent.crash();
    expect(await reach(open, "tcp", INTERNET, ANSWERED)).toBe("reached");
    expect(await reach(closed, "tcp", INTERNET, ANSWERED)).toBe("refused");
    expect(await reach(open, "tcp", PRIVATE)).toBe("silence");
    await agent.launch();
    expect(await reach(open, "tcp", INTERNET, ANSWERED)).toBe("reached");
    const { stdout } = await run("nft", ["list", "set", "inet", NETWORK, "open"]);
    // The agent's own probe is there too for a moment.
    expect(stdout.match(new RegExp(`"${NETWORK}-\\d+"`, "g"))).toHaveLength(3);
  });
});

/** Makes a namespace that stands for the rest of the world: no packet leaves the machine. */
async function makeWorld(): Promise<void> {
  await removeWorld();
  await run("ip", ["netns", "add", NAMESPACE]);
  await run("ip", ["link", "add", NAMESPACE, "type", "veth", "peer", "name", "eth0", "netns", NAMESPACE]);
  await run("ip", ["address", "add", `${HOST}/26`, "dev", NAMESPACE]);
  await run("ip", ["link", "set", NAMESPACE, "up"]);
  const inWorld = (...command: string[]) => run("ip", ["-n", NAMESPACE, ...command]);
  await inWorld("link", "set", "lo", "up");
  await inWorld("address", "add", `${INTERNET}/26`, "dev", "eth0");
  await inWorld("link", "set", "eth0", "up");
  await inWorld("route", "add", "default", "via", HOST);
  for (const address of [LINK_LOCAL, CLOUD_METADATA, PRIVATE]) {
    await inWorld("address", "add", `${address}/32`, "dev", "eth0");
    await run("ip", ["route", "add", `${address}/32`, "via", INTERNET]);
  }
}

/** Removes the world, including the one that a killed run has left. */
async function removeWorld(): Promise<void> {
  await run("ip", ["link", "delete", NAMESPACE]).catch(() => undefined);
  await run("ip", ["netns", "delete", NAMESPACE]).catch(() => undefined);
}

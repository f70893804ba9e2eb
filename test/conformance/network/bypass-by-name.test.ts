/**
 * The known classes of bypass by name and by request, each tried from inside: TLS hellos, HTTP, SOCKS, wildcards, headers
 * with secrets. The test internet counts what arrives, at addresses that no other test uses; the end prints the list with
 * the results.
 */

import { expect, test } from "vitest";
import { ADDRESS, COUNTED, PORT, SOCKS_PORT } from "../../support/internet/plan.ts";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { ask, NOTHING, putNetwork, python, reach, reached, sandboxWith } from "../../support/sandbox/egress.ts";
import { arrived, GOOGLE, internet, listResults } from "./bypasses.ts";

const platform = openPlatform();
const { eight, one } = ADDRESS;

listResults();

test("9 SNI spoofing and fronting: an allowed name leads to its own server only, whatever the address, Host or encrypted hello", async () => {
  const before = await arrived(COUNTED.fronting);
  const rules = { "front.example": [{ transform: { headers: { "x-rule": "front" } } }] };
  const sandbox = await sandboxWith({ allowOut: ["front.example", "google.example"], denyOut: NOTHING, rules });
  const there = `--connect-to ::${COUNTED.fronting}: -k`;
  expect(await ask(sandbox, "https://google.example/", there)).toMatchObject({ address: ADDRESS.google });
  const watch = await internet.watch();
  const status = "curl -sk -m 5 -o /dev/null -w '%{http_code}' -H 'Host: hidden.example'";
  for (const url of ["http://front.example/", "https://front.example/"]) {
    expect((await sandbox.commands.run(`${status} ${url} || true`)).stdout).not.toBe("200");
  }
  expect((await watch.all("request")).filter(({ host }) => host === "hidden.example")).toEqual([]);
  expect(await arrived(COUNTED.fronting)).toBe(before);
  const { stdout } = await sandbox.commands.run("dig TYPE65 google.example +short | tr -d ' ' ; true");
  expect(stdout.toLowerCase()).not.toContain(Buffer.from("not a real configuration").toString("hex"));
});

test("10 no name, or none that counts: TLS without SNI, TLS on another port and servers that speak first are not reached", async () => {
  const sandbox = await sandboxWith(GOOGLE);
  const before = await arrived(ADDRESS.google, { port: PORT.tls });
  const tls = (args: string) =>
    sandbox.commands.run(
      `timeout 20 openssl s_client -connect ${args} </dev/null 2>/dev/null | grep -c 'BEGIN CERT' || true`,
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

test("11 hellos in pieces, huge, garbage, or never: a hello in single bytes is read, and whatever stays undecided is denied", async () => {
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
  s = socket.create_connection(("${COUNTED.hellos}", 443), 20); s.settimeout(20); s.setsockopt(6, 1, 1)
  try:
    for k in range(0, len(data), pieces): s.sendall(data[k:k + pieces]); time.sleep(gap)
    return "answered" if s.recv(10)[:1] == b"\\x16" else "closed"
  except OSError as e: return "closed" if not isinstance(e, TimeoutError) else "hangs"
h = hello("${name}")
print(outcome(h, 1, 0), outcome(h[:5] + b"\\xff" * 70000, 4096, 0), outcome(b"\\0" * 100, 100, 0), outcome(h[:40], 40, 0))`;
  expect(await python(sandbox, program("google.example"))).toBe("answered closed closed closed");
  expect(await python(sandbox, program("plain.example"))).toBe("closed closed closed closed");
  expect(await arrived(COUNTED.hellos)).toBe(0);
});

test("12 HTTP tricks: absolute form, two Hosts, CONNECT, smuggling and a second request reach no other host", async () => {
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
  for at in ("echo.example", "${ADDRESS.plain}"):
    try:
      s = socket.create_connection((at, 80), 3); s.settimeout(0.5); s.sendall(text)
      while s.recv(65536): pass
    except OSError: pass
print("done")`;
  expect(await python(sandbox, program)).toBe("done");
  expect(await arrived(ADDRESS.plain)).toBe(before);
  // Where a rule adds headers, the node forwards no request that could be read in two ways.
  const withSecret = (await watch.all("request")).filter(({ headers }) => headers["authorization"] !== undefined);
  expect(withSecret.filter(({ host, address }) => host !== "api.example" || address !== ADDRESS.api)).toEqual([]);
  expect(withSecret.filter(({ url, method }) => url !== "/" || method !== "GET")).toEqual([]);
});

test("13 redirects: a redirect from an allowed host to a denied one does not reach it", async () => {
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
    s = socket.create_connection(("${COUNTED.socksNames}", 80), 20); s.settimeout(20 if host == b"www.google.example" else 3)
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: " + host + b"\\r\\nConnection: close\\r\\n\\r\\n"); s.recv(10)
  except OSError: pass
print("done")`;
  expect(await python(sandbox, program)).toBe("done");
  expect((await watch.all("socks")).map(({ host }) => host)).toEqual(["www.google.example"]);
  expect(await arrived(COUNTED.socksNames)).toBe(0);
});

test("15 wildcards: a wildcard allows neither its apex nor a name that only ends alike", async () => {
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
    "grep -rlsIE '^-----BEGIN ([A-Z]+ )*PRIVATE KEY-----' /etc /run /usr/local /var/lib /home /root /tmp /opt 2>/dev/null | grep -v '/python3' || true",
    { user: "root", timeoutMs: 180_000 },
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
    `http://${ADDRESS.api}/`,
  );
  await reach(sandbox, "one.api.example", "echo.example", eight);
  // This address claims the name, but does not own it.
  await sandbox.commands.run(
    `curl -sk -m 20 --connect-to ::${COUNTED.claimedName}: https://api.example/ -o /dev/null; true`,
  );
  const told = (await watch.all("request")).filter(({ headers }) => headers["authorization"] !== undefined);
  expect(told.map(({ address }) => address)).toEqual([ADDRESS.api]);
  expect(await arrived(COUNTED.claimedName)).toBe(0);
});

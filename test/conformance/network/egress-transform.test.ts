/**
 * `network.rules`: headers that the sandbox never sees, and that the node sets on requests to some hosts and to no others.
 */

import type { Sandbox } from "e2b";
import { describe, expect, test } from "vitest";
import { openInternet } from "../../support/internet/internet.ts";
import { dropFrozen } from "../../support/platform/frozen.ts";
import { openPlatform } from "../../support/platform/platform.ts";
import { ask, forkOf, NOTHING, python, reach, reached, sandboxWith } from "../../support/sandbox/egress.ts";
import { sharedSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const internet = openInternet();
const secret = "Bearer of-a-secret";
const headers = (values: Record<string, string>) => [{ transform: { headers: values } }];
const RULES = {
  "api.example": headers({ authorization: secret, "x-rule": "exact" }),
  "*.api.example": headers({ "x-rule": "wildcard" }),
  "*.deep.api.example": headers({ "x-rule": "deeper" }),
  "untrusted.example": headers({ "x-rule": "untrusted" }),
  "hidden.example": headers({ "x-rule": "hidden" }),
};

describe("a rule for a host", () => {
  const sandbox = sharedSandbox({ network: { rules: RULES } });

  test("sets its headers on HTTPS, in place of those of the program, whose certificates hold", async () => {
    const answer = await ask(sandbox(), "https://api.example/x?y=1", "-H 'Authorization: mine' -H 'X-Own: kept'");
    expect(answer).toMatchObject({ sni: "api.example", host: "api.example", url: "/x?y=1" });
    expect(answer.headers).toMatchObject({ authorization: secret, "x-rule": "exact", "x-own": "kept" });
  });

  test("sets its headers on plain HTTP", async () => {
    const { headers: seen } = await ask(sandbox(), "http://api.example/");
    expect(seen).toMatchObject({ authorization: secret, "x-rule": "exact" });
  });

  test.each([
    ["one.api.example", "wildcard"],
    ["one.two.api.example", "wildcard"],
    ["one.deep.api.example", "deeper"],
    ["API.example", "exact"],
  ])("%s gets that of %s only", async (host, rule) => {
    const { headers: seen } = await ask(sandbox(), `https://${host}/`, "");
    expect(seen["x-rule"]).toBe(rule);
    expect(seen["authorization"]).toBe(rule === "exact" ? secret : undefined);
  });

  test("HTTP/2 is negotiated down, not broken", async () => {
    const { stdout } = await sandbox().commands.run("curl -sS -m 30 --http2 -w '%{http_version}' https://api.example/");
    expect(stdout).toContain('"x-rule":"exact"');
    expect(stdout.endsWith("1.1")).toBe(true);
  });

  test("Python, Node and git trust the node's certificates", async () => {
    const program = `import json, urllib.request
print(json.load(urllib.request.urlopen("https://api.example/"))["headers"]["x-rule"])`;
    expect(await python(sandbox(), program)).toBe("exact");
    const node = "/svc/lib/ld-linux-x86-64.so.2 --library-path /svc/lib /svc/node";
    const fetching = `fetch("https://api.example/").then((r) => r.json()).then((r) => console.log(r.headers["x-rule"]), (e) => console.log(e.cause ?? e))`;
    expect((await sandbox().commands.run(`${node} -e '${fetching}'`)).stdout).toBe("exact\n");
    const watch = await internet.watch();
    const { stdout } = await sandbox().commands.run("git ls-remote https://api.example/repository.git");
    expect(stdout).toBe(`${"1".repeat(40)}\trefs/heads/main\n`);
    const [seen] = await watch.all("request");
    expect(seen?.headers).toMatchObject({ "x-rule": "exact", authorization: secret });
  });

  test("the trust outlives update-ca-certificates", async () => {
    await sandbox().commands.run("update-ca-certificates", { user: "root", timeoutMs: 200_000 });
    expect((await ask(sandbox(), "https://api.example/", "")).headers["x-rule"]).toBe("exact");
    const program = `import ssl, socket
s = ssl.create_default_context().wrap_socket(socket.create_connection(("api.example", 443), 30), server_hostname="api.example")
print("trusted")`;
    expect(await python(sandbox(), program)).toBe("trusted");
  });

  test("WebSocket passes, with the headers on its request", async () => {
    const watch = await internet.watch();
    for (const scheme of ["https", "http"]) expect(await python(sandbox(), webSocket(scheme))).toBe("101 hello");
    const requests = await watch.all("request");
    expect(requests.map(({ headers: seen }) => [seen["upgrade"], seen["x-rule"]])).toEqual([
      ["websocket", "exact"],
      ["websocket", "exact"],
    ]);
  });

  test("every request of a connection is for that host, or is refused", async () => {
    const watch = await internet.watch();
    const program = (first: string, second: string) => `import ssl, socket
c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
s = c.wrap_socket(socket.create_connection(("api.example", 443), 30), server_hostname="api.example"); s.settimeout(30)
def go(host):
  try:
    s.sendall(("HEAD / HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % host).encode())
    head = b""
    while b"\\r\\n\\r\\n" not in head:
      piece = s.recv(65536)
      if not piece: break
      head += piece
    return head.split(b" ")[1].decode()
  except (OSError, IndexError): return "cut"
print(go("${first}"), go("${second}"))`;
    expect(await python(sandbox(), program("api.example", "API.example:443"))).toBe("200 200");
    for (const other of ["hidden.example", "one.api.example", "front.example"]) {
      const [first, second] = (await python(sandbox(), program("api.example", other))).split(" ");
      expect([first, ["200", "101"].includes(second ?? "")]).toEqual(["200", false]);
    }
    expect((await watch.all("request")).filter(({ host }) => !/^api\.example/i.test(host))).toEqual([]);
  });

  test("a redirect to another host takes no header along", async () => {
    const { headers: seen } = await ask(sandbox(), "https://api.example/redirect?to=https://echo.example/", "-kL");
    expect(seen["x-rule"]).toBeUndefined();
    expect(seen["authorization"]).toBeUndefined();
  });

  test("hosts without a rule are left alone: their own certificate is seen, and nothing is added", async () => {
    expect((await ask(sandbox(), "https://google.example/")).headers).not.toHaveProperty("x-rule");
    const issuer = "openssl s_client -connect google.example:443 -servername google.example </dev/null 2>/dev/null";
    expect((await sandbox().commands.run(`${issuer} | grep issuer`)).stdout).toContain("Test internet authority");
    expect((await sandbox().commands.run("curl -s https://google.example/ || echo $?")).stdout).toBe("60\n");
  });

  test("the destination's certificate is verified: nothing is sent to one that no authority signed", async () => {
    const watch = await internet.watch();
    const { stdout } = await sandbox().commands.run(
      "curl -sk -m 30 -o /dev/null -w '%{http_code}' https://untrusted.example/ || true",
    );
    expect(["000", "502", "503", "526"]).toContain(stdout);
    expect(await watch.all("request")).toEqual([]);
  });

  test("no secret value is in the sandbox's environment or files", async () => {
    const { stdout } = await sandbox().commands.run(
      "cat /proc/[0-9]*/environ /run/e2b/* /etc/environment 2>/dev/null | grep -ac of-a-secret || true",
      { user: "root" },
    );
    expect(stdout).toBe("0\n");
  });
});

describe("rules", () => {
  test("permit nothing", async () => {
    const sandbox = await sandboxWith({ rules: RULES, denyOut: NOTHING });
    expect(await reach(sandbox, "api.example")).toEqual({ "api.example": "blocked" });
    expect(await reached(sandbox, "http://api.example/")).toEqual(["blocked"]);
  });

  test("apply together with allowed names", async () => {
    const sandbox = await sandboxWith({ rules: RULES, allowOut: ({ rules }) => [...rules.keys()], denyOut: NOTHING });
    expect((await ask(sandbox, "https://api.example/", "")).headers["x-rule"]).toBe("exact");
    expect(await reach(sandbox, "google.example")).toEqual({ "google.example": "blocked" });
  });

  test("survive a resume from what was stored, and are in a fork of that, the trust of all programs as well", async () => {
    const sandbox = await sandboxWith({ rules: RULES });
    // This process has its certificates in memory, and connects again on a signal.
    await sandbox.files.write("/tmp/old.py", ASK_WHEN_TOLD);
    await (await sandbox.commands.run("python3 /tmp/old.py", { background: true, timeoutMs: 0 })).disconnect();
    expect(await believing(sandbox)).toEqual(BELIEVERS);

    await sandbox.pause();
    await dropFrozen(platform, sandbox.sandboxId);
    await sandbox.connect({ timeoutMs: 600_000 });
    expect(await believing(sandbox)).toEqual(BELIEVERS);
    await sandbox.commands.run("update-ca-certificates", { user: "root", timeoutMs: 200_000 });
    const copy = await forkOf(sandbox);
    expect(await believing(copy)).toEqual(BELIEVERS);
    for (const each of [sandbox, copy]) {
      expect((await ask(each, "https://api.example/", "")).headers).toMatchObject({ authorization: secret });
      await each.files.write("/tmp/go", "");
      await expect.poll(async () => each.files.read("/tmp/answer").catch(() => "")).toBe("exact");
    }
  }, 400_000);

  test("may come and go while the sandbox runs", async () => {
    const sandbox = await sandboxWith();
    expect((await ask(sandbox, "http://api.example/")).headers).not.toHaveProperty("x-rule");
    await sandbox.updateNetwork({ rules: RULES });
    expect((await ask(sandbox, "https://api.example/", "")).headers["x-rule"]).toBe("exact");
    await sandbox.updateNetwork({ rules: { "api.example": headers({ "x-rule": "new" }) } });
    expect((await ask(sandbox, "https://api.example/", "")).headers["x-rule"]).toBe("new");
    await sandbox.updateNetwork({});
    expect((await ask(sandbox, "http://api.example/")).headers).not.toHaveProperty("x-rule");
  });

  test("are shown as they were given, and forks have them", async () => {
    const sandbox = await sandboxWith({ rules: { "API.example": headers({ "x-rule": "mine" }) } });
    expect((await sandbox.getInfo()).network?.rules).toEqual({ "api.example": headers({ "x-rule": "mine" }) });
    expect((await ask(await forkOf(sandbox), "https://api.example/", "")).headers["x-rule"]).toBe("mine");
  });
});

/** Each program prints its answer; some run as root, with the environment that sudo leaves. */
const PROGRAMS = {
  curl: "curl -sS -m 30 https://api.example/",
  python: `python3 -c 'import urllib.request as u; print(u.urlopen("https://api.example/").read().decode())'`,
  requests: `python3 -c 'from pip._vendor import requests as r; print(r.get("https://api.example/").text)'`,
  node: `/svc/lib/ld-linux-x86-64.so.2 --library-path /svc/lib /svc/node -e 'fetch("https://api.example/").then((r) => r.text()).then(console.log)'`,
  git: "git ls-remote https://api.example/repository.git",
  "sudo curl": "sudo curl -sS -m 30 https://api.example/",
  "sudo requests": `sudo python3 -c 'from pip._vendor import requests as r; print(r.get("https://api.example/").text)'`,
};
const BELIEVERS = Object.keys(PROGRAMS);

/** Lists the programs that accepted the certificate shown to them, and whose request got the header. */
async function believing(sandbox: Sandbox): Promise<readonly string[]> {
  const lines = Object.entries(PROGRAMS).map(
    ([name, program]) => `${program} 2>&1 | grep -Eq '"x-rule": ?"exact"|refs/heads/main' && echo "${name}"`,
  );
  const { stdout } = await sandbox.commands.run(`${lines.join("\n")}\ntrue`, { timeoutMs: 200_000 });
  return stdout.trim().split("\n");
}

const ASK_WHEN_TOLD = `import json, os, ssl, time, urllib.request
trust = ssl.create_default_context()
while not os.path.exists("/tmp/go"): time.sleep(0.05)
answer = json.load(urllib.request.urlopen("https://api.example/", context=trust))["headers"]["x-rule"]
open("/tmp/answer", "w").write(answer)`;

function webSocket(scheme: string): string {
  return `import base64, os, socket, ssl, struct
s = socket.create_connection(("api.example", ${scheme === "https" ? 443 : 80}), 30); s.settimeout(30)
if ${scheme === "https" ? "True" : "False"}: s = ssl.create_default_context().wrap_socket(s, server_hostname="api.example")
key = base64.b64encode(os.urandom(16)).decode()
s.sendall(("GET /chat HTTP/1.1\\r\\nHost: api.example\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: %s\\r\\n\\r\\n" % key).encode())
f = s.makefile("rb")
status = f.readline().split()[1].decode()
while f.readline() not in (b"\\r\\n", b""): pass
mask = os.urandom(4)
s.sendall(bytes([0x81, 0x80 | 5]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(b"hello")))
head = f.read(2)
print(status, f.read(head[1] & 127).decode())`;
}

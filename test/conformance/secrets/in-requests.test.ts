/**
 * Secrets and identity tokens in requests: the node puts them into headers, for exactly the hosts that rules name, and
 * the sandbox never has them. The servers of the test internet repeat requests, so the tests look at what arrived there.
 */

import { Sandbox, Secret } from "e2b";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { openInternet } from "../../support/internet/internet.ts";
import { dropFrozen } from "../../support/platform/frozen.ts";
import { api, asAdmin, openPlatform } from "../../support/platform/platform.ts";
import { forkOf, python, sandboxWith } from "../../support/sandbox/egress.ts";
import { ownSandbox, refusal, sharedSandbox } from "../../support/sandbox/sdk.ts";
import { freshValue, headerRule, ownSecret } from "../../support/sandbox/secrets.ts";

const platform = openPlatform();
const internet = openInternet();
const REFUSED = 502;

/** Sends a request without a body in its answer, and resolves to the status. */
async function statusOf(sandbox: Sandbox, url: string, options = ""): Promise<number> {
  const command = `curl -sS -m 30 -o /dev/null -w '%{http_code}' ${options} '${url}' || true`;
  return Number((await sandbox.commands.run(command)).stdout);
}

/** The values that a header had in the requests that arrived while `act` ran. */
async function arrived(header: string, act: () => Promise<unknown>): Promise<readonly unknown[]> {
  const watch = await internet.watch();
  await act();
  return (await watch.all("request")).map(({ headers }) => headers[header]);
}

describe("a secret in a rule", () => {
  const value = freshValue();
  const name = `shared-${freshValue().slice(2, 14)}`;
  beforeAll(async () => {
    await Secret.create(name, value);
    return async () => {
      await Secret.destroy(name);
    };
  });
  const sandbox = sharedSandbox({
    network: {
      rules: {
        "api.example": [{ transform: { headers: { authorization: `Bearer ${Secret.fill(name)}` } } }],
        "*.api.example": [{ transform: { headers: { "x-key": `\${svc.secrets.${name}}` } } }],
      },
    },
  });

  test("is in the requests of curl, Python, Node and a raw client, in place of their own header", async () => {
    await sandbox().files.write("/tmp/raw.py", RAW_CLIENT);
    const programs = [
      "curl -sSI -m 30 -H 'Authorization: mine' https://api.example/curl",
      `python3 -c 'import urllib.request as u; u.urlopen(u.Request("https://api.example/urllib", method="HEAD", headers={"Authorization": "mine"}))'`,
      `python3 -c 'from pip._vendor import requests as r; r.head("https://api.example/requests", headers={"authorization": "mine"})'`,
      `/svc/lib/ld-linux-x86-64.so.2 --library-path /svc/lib /svc/node -e 'fetch("https://api.example/node", { method: "HEAD" })'`,
      "python3 /tmp/raw.py",
    ];
    const watch = await internet.watch();
    await sandbox().commands.run(programs.join("\n"), { timeoutMs: 200_000 });
    const requests = await watch.all("request");
    expect(requests.map(({ url, headers }) => [url, headers["authorization"]])).toEqual(
      ["/curl", "/urllib", "/requests", "/node", "/raw"].map((url) => [url, `Bearer ${value}`]),
    );
  });

  test("with a wildcard is in requests to the names below, and in none to other hosts", async () => {
    const at = (host: string) => arrived("x-key", () => statusOf(sandbox(), `https://${host}/`, "-kI"));
    expect(await at("one.two.api.example")).toEqual([value]);
    expect(await at("api.example")).toEqual([undefined]);
    expect(await at("echo.example")).toEqual([undefined]);
  });

  test("is sent over TLS only: a request without it is refused with the reason", async () => {
    const { stdout } = await sandbox().commands.run("curl -sS -m 30 -w ' %{http_code}' http://api.example/");
    expect(stdout).toMatch(/^svc: the rule of api\.example has placeholders.*use https\n 403$/);
    expect(await arrived("authorization", () => statusOf(sandbox(), "http://api.example/"))).toEqual([]);
  });

  test("is not sent along with a redirect to another host", async () => {
    const to = "https://api.example/redirect?to=https://echo.example/";
    const headers = await arrived("authorization", () => statusOf(sandbox(), to, "-kL"));
    expect(headers).toEqual([`Bearer ${value}`, undefined]);
  });

  test.each([
    [
      "a second Host header",
      "api.example",
      "GET / HTTP/1.1\\r\\nHost: api.example\\r\\nHost: echo.example\\r\\n\\r\\n",
    ],
    ["a Host that differs from the SNI", "api.example", "GET / HTTP/1.1\\r\\nHost: echo.example\\r\\n\\r\\n"],
    [
      "CONNECT inside the connection",
      "api.example",
      "CONNECT echo.example:443 HTTP/1.1\\r\\nHost: echo.example:443\\r\\n\\r\\n",
    ],
    [
      "a whole address of another host",
      "api.example",
      "GET https://echo.example/ HTTP/1.1\\r\\nHost: api.example\\r\\n\\r\\n",
    ],
    ["an SNI that differs from Host", "echo.example", "GET / HTTP/1.1\\r\\nHost: api.example\\r\\n\\r\\n"],
  ])("is not sent for %s", async (_, sni, bytes) => {
    const headers = await arrived("authorization", () => python(sandbox(), overTls(sni, bytes)));
    expect(headers.filter((header) => header !== undefined)).toEqual([]);
  });

  test("is not in what the platform shows of the sandbox and of its traffic", async () => {
    await statusOf(sandbox(), "https://api.example/");
    const { sandboxId } = sandbox();
    const shown = await Promise.all(
      [`/sandboxes/${sandboxId}`, `/sandboxes/${sandboxId}/network/log`, `/secrets/${name}`, "/secrets"].map((path) =>
        api(platform, "GET", path),
      ),
    );
    expect(shown.map(({ status, text }) => [status, text.includes(value)])).toEqual(shown.map(() => [200, false]));
    expect(shown[0]?.text).toContain(`\${e2b.secrets.${name}}`);
  });
});

test("a rule with allowPlainHttp sends a secret without TLS", async () => {
  const secret = await ownSecret();
  const rule = headerRule("api.example", { "x-key": Secret.fill(secret.name) }, { allowPlainHttp: true });
  const sandbox = await sandboxWith(rule);
  expect(await arrived("x-key", () => statusOf(sandbox, "http://api.example/"))).toEqual([secret.value]);
});

test("a running sandbox uses a new version soon, and requests fail when the secret is deleted", async () => {
  const secret = await ownSecret();
  const sandbox = await sandboxWith(headerRule("api.example", { "x-key": Secret.fill(secret.name) }));
  const sent = () => arrived("x-key", () => statusOf(sandbox, "https://api.example/"));
  expect(await sent()).toEqual([secret.value]);
  const next = freshValue();
  await Secret.update(secret.name, next);
  await expect.poll(sent, { timeout: 90_000 }).toEqual([next]);

  // A paused sandbox has neither the value nor a way to it when the secret is deleted meanwhile.
  const paused = await sandboxWith(headerRule("api.example", { "x-key": Secret.fill(secret.name) }));
  await statusOf(paused, "https://api.example/");
  await paused.pause();
  await Secret.destroy(secret.name);
  await expect.poll(() => statusOf(sandbox, "https://api.example/"), { timeout: 90_000 }).toBe(REFUSED);
  expect(await sent()).toEqual([]);
  const { stdout } = await sandbox.commands.run("curl -sS -m 30 https://api.example/");
  expect(stdout).toMatch(new RegExp(`^svc: the placeholder \\\${e2b\\.secrets\\.${secret.name}} cannot be resolved: `));
  await paused.connect();
  expect(await statusOf(paused, "https://api.example/")).toBe(REFUSED);
});

test("resumed and forked sandboxes use the secret, and forks and their source have tokens of their own", async () => {
  const secret = await ownSecret();
  const sandbox = await ownSandbox({
    iam: { tokens: { cloud: Secret.iamToken({ audience: "sts.example", tokenType: "JWT-SVID" }) } },
    network: {
      rules: {
        "api.example": [
          ({ iam }: { iam: { tokens: Record<string, string> } }) => ({
            headers: { "x-key": Secret.fill(secret.name), "x-token": `${iam.tokens["cloud"]}` },
          }),
        ].map((transform) => ({ transform })),
      },
    },
  });
  const sent = async (from: Sandbox) => {
    const watch = await internet.watch();
    await statusOf(from, "https://api.example/");
    const [request] = await watch.all("request");
    return { key: request?.headers["x-key"], subject: subjectOf(request?.headers["x-token"]) };
  };
  const whole = (from: Sandbox) => ({ key: secret.value, subject: expect.stringMatching(`/${from.sandboxId}$`) });
  expect(await sent(sandbox)).toEqual(whole(sandbox));
  await sandbox.pause();
  await sandbox.connect();
  expect(await sent(sandbox)).toEqual(whole(sandbox));
  await sandbox.pause();
  await dropFrozen(platform, sandbox.sandboxId);
  await sandbox.connect();
  expect(await sent(sandbox)).toEqual(whole(sandbox));
  const copy = await forkOf(sandbox);
  expect(await sent(copy)).toEqual(whole(copy));
});

test("a sandbox made from a snapshot has no rule of the snapshot's sandbox, and so no secret", async () => {
  const secret = await ownSecret();
  const source = await sandboxWith(headerRule("api.example", { "x-key": Secret.fill(secret.name) }));
  const { snapshotId } = await source.createSnapshot();
  onTestFinished(async () => {
    await Sandbox.deleteSnapshot(snapshotId);
  });
  const made = await ownSandbox({ template: snapshotId });
  expect(await arrived("x-key", () => statusOf(made, "https://api.example/", "-k"))).toEqual([undefined]);
});

test("another project's secret does not exist for a rule", async () => {
  const secret = await ownSecret();
  const project = await api(platform, "POST", "/admin/projects", { ...asAdmin(platform), body: { name: secret.name } });
  const { teamID } = project.json as { teamID: string };
  const made = await api(platform, "POST", `/admin/teams/${teamID}/api-keys`, {
    ...asAdmin(platform),
    body: { name: "other" },
  });
  const { key } = made.json as { key: string };
  const rule = headerRule("api.example", { "x-key": Secret.fill(secret.name) });
  const failure = await refusal(Sandbox.create({ apiKey: key, network: rule }));
  expect(failure.message).toContain(secret.name);
  expect(failure.message).not.toContain(secret.value);
});

/** The subject of a signed token; nothing of it is verified here. */
function subjectOf(token: unknown): string {
  const [, claims = ""] = String(token).split(".");
  const { sub = "" } = JSON.parse(Buffer.from(claims, "base64url").toString() || "{}") as { sub?: string };
  return sub;
}

/** Sends bytes over TLS without looking at the certificate, and reads a little. */
function overTls(sni: string, bytes: string): string {
  return `import ssl, socket
c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
try:
  s = c.wrap_socket(socket.create_connection(("api.example", 443), 30), server_hostname="${sni}"); s.settimeout(30)
  s.sendall(b"${bytes}"); print(s.recv(64))
except OSError as error: print(error)`;
}

/** Writes its request as programs in Go do: canonical header names, one write. */
const RAW_CLIENT = `import ssl, socket
s = ssl.create_default_context().wrap_socket(socket.create_connection(("api.example", 443), 30), server_hostname="api.example")
s.settimeout(30)
s.sendall(b"HEAD /raw HTTP/1.1\\r\\nHost: api.example\\r\\nUser-Agent: Go-http-client/1.1\\r\\nAuthorization: mine\\r\\nAccept-Encoding: gzip\\r\\n\\r\\n")
print(s.recv(100))`;

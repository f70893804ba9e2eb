/** Programs that use the node as their proxy, which leads through a company's proxy that looks into TLS. */

import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { largeBuffers } from "../../../../agent/egress/carry/intake.ts";
import type { Noted } from "../../../../agent/egress/channel/decisions.ts";
import type { CompanyProxies } from "../../../../agent/egress/channel/messages.ts";
import { proxyRequest } from "../../../../agent/egress/company/arrival.ts";
import { CODE } from "../../../../agent/egress/dns/question.ts";
import { makeAuthority } from "../../../../agent/egress/rewrite/certificates.ts";
import { transform } from "../../../../agent/egress/rewrite/transform.ts";
import { openTrust } from "../../../../agent/egress/rewrite/trust.ts";
import { type Flow, type FlowDeps, startFlow } from "../../../../agent/egress/traffic/flow.ts";
import { proxyVariables } from "../../../../agent/host/company-proxies.ts";
import { CLOSED, type EgressPolicy, OPEN } from "../../../../shared/policy/egress-policy.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { companyProxy } from "../../../support/peers/company-proxy.ts";
import { listening } from "../../../support/peers/listening.ts";

const run = promisify(execFile);
const log = createLog({ component: "test", level: "silent" });
const NAMES: Readonly<Record<string, readonly string[]>> = {
  "public.example": ["198.51.100.7"],
  "other.example": ["198.51.100.8"],
  "forbidden.example": ["198.51.100.9"],
  "inside.example": ["10.1.2.3"],
  "half.example": ["198.51.100.7", "10.1.2.3"],
};

let company: Awaited<ReturnType<typeof companyProxy>>;
let directory: string;
let node: { certificate: string; key: string };
const state: { policy: EgressPolicy; noted: Noted[]; flows: Set<Flow>; proxies: CompanyProxies } = {
  policy: OPEN,
  noted: [],
  flows: new Set<Flow>(),
  proxies: {},
};
let port: number;
let environment: NodeJS.ProcessEnv;

const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => {
  const authority = node;
  const deps: FlowDeps = {
    names: {
      addresses: async (name) => {
        const addresses = NAMES[name] ?? [];
        return { addresses, code: addresses.length > 0 ? CODE.ok : CODE.noName, ttl: 1 };
      },
    },
    isOwn: () => false,
    proxyAllowedRanges: [],
    transform,
    authority,
    trust: openTrust(company.certificate),
    buffers: largeBuffers(),
    log,
  };
  const owner = {
    policy: () => state.policy,
    note: (entry: Noted) => void state.noted.push(entry),
    resolve: async () => ({ problem: "there is no value" }),
  };
  socket.on("error", () => undefined);
  const flow = startFlow(socket, owner, deps, (one) => proxyRequest(one, state.proxies));
  state.flows.add(flow);
  void flow.closed.then(() => state.flows.delete(flow));
});

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "company-"));
  company = await companyProxy();
  node = await makeAuthority("svc egress test", { from: Date.now() - 1e6, until: Date.now() + 1e8 });
  await writeFile(join(directory, "ca.pem"), company.certificate + node.certificate);
  port = await listening(server);
  const ca = join(directory, "ca.pem");
  environment = {
    PATH: process.env["PATH"],
    SSL_CERT_FILE: ca,
    NODE_EXTRA_CA_CERTS: ca,
    REQUESTS_CA_BUNDLE: ca,
    CURL_CA_BUNDLE: ca,
  };
}, 60_000);
afterAll(async () => {
  for (const flow of state.flows) flow.cut();
  server.close();
  company.stop();
  await rm(directory, { recursive: true });
});

async function world(policy: EgressPolicy = OPEN) {
  const proxy = { host: "127.0.0.1", port: company.port, authorization: "Basic c2VjcmV0" };
  state.proxies = { http: proxy, https: proxy };
  state.policy = policy;
  state.noted.length = 0;
  company.seen.length = 0;
  const variables = proxyVariables(state.proxies, { sandboxNoProxy: "" }, `127.0.0.1:${port}`);
  const env = { ...environment, ...variables };
  const program = async (command: string, args: readonly string[]) => {
    const { stdout } = await run(command, args, { env, timeout: 80_000 });
    return stdout;
  };
  return { program, curl: (...args: string[]) => program("curl", ["-sS", "--max-time", "60", ...args]) };
}

const rules = () => state.noted.map(({ name, address, port, verdict, rule }) => [name ?? address, port, verdict, rule]);

test("curl, Python and Node reach an inspected host through both proxies, and the sandbox's side shows no password", async () => {
  const { curl, program } = await world();
  expect(await curl("https://public.example/curl")).toBe("inspected public.example /curl\n");
  expect(await curl("http://public.example/plain?x=1")).toContain(
    "inspected public.example http://public.example/plain?x=1",
  );
  const python = `import urllib.request as u; print(u.urlopen("https://public.example/python").read().decode())`;
  expect(await program("python3", ["-c", python])).toContain("inspected public.example /python");
  const script = `
const http = require("node:http"), https = require("node:https"), tls = require("node:tls");
const proxy = new URL(process.env.HTTPS_PROXY);
http.request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: "public.example:443" }).on("connect", (_, socket) => {
  const createConnection = () => tls.connect({ socket, servername: "public.example" });
  https.get({ host: "public.example", headers: { host: "public.example" }, path: "/node", createConnection }, (answer) => answer.pipe(process.stdout));
}).end();`;
  expect(await program(process.execPath, ["-e", script])).toContain("inspected public.example /node");
  const authorization = "Basic c2VjcmV0";
  const tunnel = { line: "CONNECT public.example:443", authorization };
  expect(company.seen).toEqual([
    tunnel,
    { line: "GET http://public.example/plain?x=1", authorization },
    tunnel,
    tunnel,
  ]);
  await expect.poll(rules).toEqual([443, 80, 443, 443].map((port) => ["public.example", port, "allow", "default"]));
});

test("a request for a forbidden name, address or range never reaches the company's proxy, and the client learns why", async () => {
  const { curl } = await world({ ...CLOSED, allowDomains: ["public.example"] });
  expect(await curl("https://public.example/")).toContain("inspected");
  company.seen.length = 0;
  const codes = ["-o", "/dev/null", "-w", "%{http_connect} %{http_code}"];
  for (const url of ["https://other.example/", "https://198.51.100.7/", "https://public.example:8443/"])
    expect(await curl(...codes, url).catch(({ stdout }: { stdout: string }) => stdout)).toBe("403 000");
  expect(await curl("http://other.example/")).toContain(
    "svc: the policy of this sandbox forbids it (denyOut 0.0.0.0/0)",
  );
  expect(company.seen).toEqual([]);
  state.policy = OPEN;
  for (const host of ["10.1.2.3", "127.0.0.1", "169.254.169.254", "inside.example", "half.example"])
    expect(
      await curl(...codes, "--noproxy", "", `https://${host}/`).catch(({ stdout }: { stdout: string }) => stdout),
    ).toBe("403 000");
  expect(company.seen).toEqual([]);
  expect(rules().slice(-2)).toEqual([
    ["inside.example", 443, "deny", "always 10.0.0.0/8"],
    ["half.example", 443, "deny", "always 10.0.0.0/8"],
  ]);
});

test("a name that only the company's proxy resolves passes unless it belongs to a network inside, or the policy lists addresses", async () => {
  const { curl } = await world();
  expect(await curl("https://unresolved.example/")).toContain("inspected unresolved.example");
  const code = async (url: string) =>
    curl("-o", "/dev/null", "-w", "%{http_connect}", "--noproxy", "", url).catch(
      ({ stdout }: { stdout: string }) => stdout,
    );
  for (const host of ["intranet", "localhost", "wiki.corp", "printer.local"])
    expect(await code(`https://${host}/`)).toBe("502");
  state.policy = { ...OPEN, denyRanges: ["203.0.113.0/24"] };
  expect(await code("https://unresolved.example/")).toBe("502");
  expect(company.seen.map(({ line }) => line)).toEqual(["CONNECT unresolved.example:443"]);
  expect(rules().at(-1)).toEqual(["unresolved.example", 443, "allow", "failed the name has no address: NXDOMAIN"]);
});

test("a rule's headers are set on requests through both proxies, also in TLS, whose certificate is verified", async () => {
  const rule = { host: "public.example", headers: { "X-Team": "blue" } };
  const { curl } = await world({ ...OPEN, rules: [rule] });
  expect(await curl("https://public.example/a")).toBe("inspected public.example /a of blue\n");
  expect(await curl("http://public.example/b")).toContain("of blue");
  expect(await curl("-H", "X-Team: red", "-H", "Proxy-Authorization: mine", "https://public.example/c")).toContain(
    "of blue",
  );
});

test("one connection of a client serves one host of plain HTTP, and a client asks again for the next", async () => {
  const { curl } = await world();
  const both = await curl(
    "-H",
    "Proxy-Authorization: Basic bWluZQ==",
    "http://public.example/1",
    "http://other.example/2",
  );
  expect(both).toContain("inspected public.example http://public.example/1");
  expect(both).toContain("inspected other.example http://other.example/2");
  expect(new Set(company.seen.map(({ authorization }) => authorization))).toEqual(new Set(["Basic c2VjcmV0"]));
});

test("what the company's proxy refuses, and a proxy that is down, are answers and entries of the log", async () => {
  const { curl } = await world();
  const code = async () =>
    curl("-o", "/dev/null", "-w", "%{http_connect}", "https://forbidden.example/").catch(
      ({ stdout }: { stdout: string }) => stdout,
    );
  expect(await code()).toBe("502");
  state.proxies = { https: { host: "127.0.0.1", port: 9 } };
  expect(await code()).toBe("502");
  expect(rules()).toEqual([
    ["forbidden.example", 443, "allow", "failed the company's proxy refused the connection with status 403"],
    ["forbidden.example", 443, "allow", "failed the company's proxy cannot be reached: ECONNREFUSED"],
  ]);
});

test("an open tunnel ends when the policy forbids it, and stays when it does not", async () => {
  await world();
  const { connect } = await import("node:net");
  const client = connect(port, "127.0.0.1");
  const closed = new Promise((resolve) => client.once("close", resolve));
  client.on("error", () => undefined);
  client.write("CONNECT public.example:443 HTTP/1.1\r\nHost: public.example:443\r\n\r\n");
  const answer = await new Promise<Buffer>((resolve) => client.once("data", resolve));
  expect(answer.toString()).toBe("HTTP/1.1 200 Connection established\r\n\r\n");
  state.policy = { ...OPEN, denyRanges: ["203.0.113.0/24"] };
  for (const flow of state.flows) flow.recheck();
  expect(client.destroyed).toBe(false);
  state.policy = CLOSED;
  for (const flow of state.flows) flow.recheck();
  await closed;
});

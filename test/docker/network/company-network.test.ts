/** Real sandboxes in a company's network: its proxy looks into TLS, and nothing else leads to the internet. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decode, encode } from "dns-packet";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CLOSED } from "../../../shared/policy/egress-policy.ts";
import { GATEWAY, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";
import { companyProxy } from "../../support/peers/company-proxy.ts";
import { type NameServer, nameServer } from "../../support/peers/name-server.ts";
import { command } from "../../support/sandbox/envd-commands.ts";

let agent: RealAgent;
let company: Awaited<ReturnType<typeof companyProxy>>;
let names: NameServer;
let directory: string;

const NODE = `
const http = require("node:http"), https = require("node:https"), tls = require("node:tls");
const proxy = new URL(process.env.HTTPS_PROXY);
http.request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: "public.example:443" }).on("connect", (_, socket) => {
  const createConnection = () => tls.connect({ socket, servername: "public.example" });
  https.get({ host: "public.example", path: "/node", createConnection }, (answer) => answer.pipe(process.stdout));
}).end();`;
const PYTHON = `import urllib.request as u; print(u.urlopen("https://public.example/python").read().decode())`;
const REQUESTS = `from pip._vendor import requests as r; print(r.get("https://public.example/requests").text)`;
const SCRIPT = `cat >/tmp/node.js <<'END'
${NODE}
END
curl -sS https://public.example/curl; curl -sS http://public.example/plain; sudo curl -sS https://public.example/sudo
python3 -c '${PYTHON}'; python3 -c '${REQUESTS}'
env -u SSL_CERT_FILE -u REQUESTS_CA_BUNDLE curl -sS https://public.example/system
/svc/node /tmp/node.js`;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "company-"));
  company = await companyProxy();
  names = await nameServer((message) => {
    const query = decode(message);
    const [question] = query.questions ?? [];
    const known = question?.name === "public.example" && question.type === "A";
    return encode({
      type: "response",
      id: query.id ?? 0,
      flags: question?.name === "public.example" ? 0x0180 : 0x0183,
      questions: query.questions ?? [],
      answers: known ? [{ type: "A", name: "public.example", ttl: 60, data: "198.51.100.7" }] : [],
    });
  });
  const ca = join(directory, "company-ca.pem");
  await writeFile(ca, company.certificate);
  const proxy = `http://me:secret@127.0.0.1:${company.port}`;
  agent = await realAgent({
    SVC_SANDBOX_CA_FILE: ca,
    SVC_SANDBOX_HTTP_PROXY: proxy,
    SVC_SANDBOX_HTTPS_PROXY: proxy,
    SVC_DNS_UPSTREAM: `${names.host}:${names.port}`,
  });
});
afterAll(async () => {
  await agent.close();
  names.close();
  company.stop();
  await rm(directory, { recursive: true });
});

test("curl, Python, Node and sudo trust the company's proxy and use it, and their policy decides", async () => {
  const started = await agent.start();
  const { output } = await command(started.address, SCRIPT, { user: "user" });
  const answers = ["curl", "sudo", "python", "requests", "system"].map((path) => `inspected public.example /${path}`);
  for (const answer of [...answers, "inspected public.example http://public.example/plain"])
    expect(output).toContain(answer);
  expect(output).toMatch(/inspected public\.example(:80)? \/node/);
  const authorization = `Basic ${Buffer.from("me:secret").toString("base64")}`;
  expect(new Set(company.seen.map((one) => one.authorization))).toEqual(new Set([authorization]));

  const seen = await command(started.address, "env; curl -sS --max-time 5 https://nowhere.corp/ 2>&1", {
    user: "user",
  });
  expect(seen.output).toMatch(new RegExp(`https_proxy=http://${GATEWAY.replaceAll(".", "\\.")}:\\d+`));
  expect(seen.output).not.toContain("secret");
  const own = await command(started.address, "echo $HTTPS_PROXY-$https_proxy-", { envs: { https_proxy: "mine" } });
  expect(own.output).toBe("-mine-");

  const closed = await agent.start({ egress: CLOSED });
  company.seen.length = 0;
  const code = "curl -sS -o /dev/null -w '%{http_connect}' https://public.example/ 2>/dev/null";
  expect((await command(closed.address, code)).output).toBe("403");
  expect(company.seen).toEqual([]);
  const entries = async () =>
    (await agent.call.networkLog({ params: { sandboxId: closed.sandboxId }, query: { limit: 100 } })).entries;
  await expect
    .poll(entries)
    .toEqual(expect.arrayContaining([expect.objectContaining({ name: "public.example", rule: "denyOut 0.0.0.0/0" })]));
});

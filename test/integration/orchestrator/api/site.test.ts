/** The port with TLS for clients on other machines: API, pages and sandboxes of one platform, and the published SDK with a domain and a key. */

import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { freePort } from "../../../support/peers/listening.ts";
import { type TestSite, testSite } from "../../../support/tls/site.ts";

let files: TestSite;
let cluster: Cluster;
let port = 0;
let domain = "";
beforeAll(async () => {
  port = await freePort();
  domain = `sbx.localhost:${port}`;
  files = await testSite(domain);
  const { certFile: tlsCertFile, keyFile: tlsKeyFile } = files;
  const publicUrl = `https://api.${domain}`;
  const config = { domain, publicUrl, tlsCertFile, tlsKeyFile, tlsHost: "::", tlsPort: port };
  cluster = await startCluster({ edge: "within", config });
});
afterAll(async () => {
  await cluster.stop();
  files.remove();
});

async function session(): Promise<ClientHttp2Session> {
  const opened = connect(`https://api.${domain}`, { ca: files.authority.certificate });
  onTestFinished(() => opened.destroy());
  await once(opened, "connect");
  return opened;
}

async function ask(by: ClientHttp2Session, headers: Record<string, string>, body?: string) {
  const stream = by.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  const [fields] = (await once(stream, "response")) as [Record<string, unknown>];
  return { status: fields[":status"], fields, text: await text(stream) };
}

const create = async (by: ClientHttp2Session) => {
  const headers = {
    ":method": "POST",
    ":path": "/v2/sandboxes",
    "x-api-key": cluster.key,
    "content-type": "application/json",
  };
  const { status, text: body } = await ask(by, headers, JSON.stringify({ templateID: "base" }));
  expect(status, body).toBe(201);
  return JSON.parse(body) as { readonly sandboxID: string; readonly domain: string };
};

test("one session of HTTP/2 carries the API, its pages and a server in a sandbox", async () => {
  const by = await session();
  const { sandboxID, domain: said } = await create(by);
  expect(said).toBe(domain);
  const server = createServer((asked, response) => response.end(`${asked.httpVersion} ${asked.headers.host}`));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const host = `${(server.address() as AddressInfo).port}-${sandboxID}.${domain}`;
  expect(await ask(by, { ":authority": host })).toMatchObject({ status: 200, text: `1.1 ${host}` });
  const docs = await ask(by, { ":path": "/docs" });
  expect([docs.status, docs.fields["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
  expect((await ask(by, { ":authority": `8000-inobody.${domain}` })).status).toBe(502);
});

test("a refusal ends its stream and not the session", async () => {
  const by = await session();
  for (const key of ["", "svc_00000000000000000000000000000000"]) {
    const { status } = await ask(
      by,
      { ":method": "POST", ":path": "/v2/sandboxes", "x-api-key": key },
      "x".repeat(200_000),
    );
    expect(status).toBe(401);
  }
  expect((await ask(by, { ":path": "/health" })).status).toBe(204);
  expect((await ask(by, { ":path": "/no/such" })).status).toBe(404);
});

test("uploads of templates go to the domain", async () => {
  const by = await session();
  const headers = {
    ":method": "POST",
    ":path": "/v3/templates",
    "x-api-key": cluster.key,
    "content-type": "application/json",
  };
  const made = JSON.parse((await ask(by, headers, JSON.stringify({ name: "up" }))).text) as { templateID: string };
  const asked = await ask(by, {
    ":path": `/templates/${made.templateID}/files/${"a".repeat(64)}`,
    "x-api-key": cluster.key,
  });
  expect((JSON.parse(asked.text) as { url: string }).url.startsWith(`https://api.${domain}/`)).toBe(true);
});

test("readiness and metrics know the certificate", async () => {
  const { body } = await cluster.ask("GET", "/readyz?verbose");
  expect(body).toMatchObject({ ready: true, checks: { certificate: "ok" } });
  const metrics = await cluster.ask("GET", "/metrics", {
    key: null,
    headers: { authorization: "Bearer test-admin-token-0001" },
  });
  const [, seconds] = /^svc_certificate_expiry_timestamp_seconds (\S+)$/m.exec(metrics.text) ?? [];
  expect(Number(seconds) * 1000).toBeGreaterThan(Date.now() + 390 * 86_400_000);
  expect(metrics.text).not.toMatch(/^svc_finding\{/m);
});

const PROGRAM = `
const { Sandbox } = require("e2b");
(async () => {
  const made = await Promise.all([1, 2, 3].map((at) => Sandbox.create({ metadata: { at: String(at) } })));
  const info = await made[0].getInfo();
  const hosts = made.map((one) => one.getHost(8000) === "8000-" + one.sandboxId + "." + process.env.E2B_DOMAIN);
  const killed = await Promise.all(made.map((one) => one.kill()));
  console.log(JSON.stringify([info.metadata, hosts, killed]));
})();
`;

test("the published SDK needs the domain, a key, and the authority's certificate", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["-e", PROGRAM], {
    env: { E2B_DOMAIN: domain, E2B_API_KEY: cluster.key.replace(/^svc_/, "e2b_"), NODE_EXTRA_CA_CERTS: files.certFile },
    timeout: 60_000,
  });
  expect(JSON.parse(stdout)).toEqual([{ at: "1" }, [true, true, true], [true, true, true]]);
});

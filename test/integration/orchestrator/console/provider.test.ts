/** What the platform keeps of a provider of log-ins while it does not answer. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createProvider, newPending } from "../../../../orchestrator/console/oidc/provider.ts";

const HOUR_MS = 3_600_000;
const BACK = "http://127.0.0.1/console/oidc/back";

/** A provider that describes itself, or refuses to; and a platform that asks it. */
async function setup() {
  const peer = { answers: true, asked: 0, endpoint: "/first" };
  const server = createServer((_request, response) => {
    peer.asked++;
    if (!peer.answers) {
      response.writeHead(503).end();
      return;
    }
    const described = { issuer, authorization_endpoint: issuer + peer.endpoint, token_endpoint: `${issuer}/token` };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(described));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clock = { now: 0 };
  const warnings: string[] = [];
  const provider = createProvider(
    { issuer, clientId: "console", clientSecret: undefined, scope: "openid" },
    { now: () => clock.now, log: { warn: (_fields: unknown, text?: string) => void warnings.push(text ?? "") } },
  );
  const path = async () => (await provider.authorizationUrl(newPending(), BACK)).pathname;
  return { peer, clock, warnings, path };
}

test("a provider whose description cannot be read again is known by the earlier one, and asked once a minute", async () => {
  const { peer, clock, warnings, path } = await setup();
  expect(await path()).toBe("/first");
  peer.answers = false;
  clock.now = HOUR_MS + 1;
  expect([await path(), await path()]).toEqual(["/first", "/first"]);
  expect([peer.asked, warnings]).toEqual([2, [expect.stringContaining("the earlier one stays")]]);
  peer.answers = true;
  peer.endpoint = "/second";
  clock.now += 59_000;
  expect(await path()).toBe("/first");
  clock.now += 2_000;
  expect([await path(), peer.asked]).toEqual(["/second", 3]);
});

test("log-ins at the same moment read the description once", async () => {
  const { peer, path } = await setup();
  expect(await Promise.all([path(), path(), path()])).toEqual(["/first", "/first", "/first"]);
  expect(peer.asked).toBe(1);
});

test("a provider that has never answered is asked again by the next log-in", async () => {
  const { peer, path } = await setup();
  peer.answers = false;
  await expect(path()).rejects.toThrow();
  peer.answers = true;
  expect(await path()).toBe("/first");
});

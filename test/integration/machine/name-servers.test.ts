/** The doctor's question to the name servers of a node. */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readInstance } from "../../../machine/base/instance.ts";
import { thisMachine } from "../../../machine/base/this-machine.ts";
import { askNameServers } from "../../../machine/evidence/name-servers.ts";
import { freePort } from "../../support/peers/listening.ts";

async function nameServer(): Promise<number> {
  const server = createSocket("udp4");
  onTestFinished(() => void server.close());
  server.on("message", (query, { port, address }) => server.send(query, port, address));
  server.bind(0, "127.0.0.1");
  await once(server, "listening");
  return server.address().port;
}

test("one that answers is told from a closed port, from an address that may not be reached, and from a word", async () => {
  const root = mkdtempSync(join(tmpdir(), "svc-name-servers-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, "etc/svc"), { recursive: true });
  const asked = [
    [`127.0.0.1:${await nameServer()}`, true],
    [`127.0.0.1:${await freePort()}`, false],
    // The kernel refuses the connection itself, as it does without a route.
    ["255.255.255.255", false],
    ["nowhere", false],
  ] as const;
  const servers = asked.map(([address]) => address).join(",");
  writeFileSync(join(root, "etc/svc/agent.env"), `SVC_DNS_UPSTREAM="${servers}"\n`);
  expect(await askNameServers(thisMachine(readInstance("", root)))).toEqual(
    asked.map(([address, answers]) => ({ address, answers })),
  );
});

/** A node's certificate is renewed at two thirds of its time, on real TLS sockets, with connections that stay open. */

import { rm } from "node:fs/promises";
import { Agent, request } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { filesOf } from "../../../../agent/joining/open-peering.ts";
import { createOrchestrators } from "../../../../agent/joining/orchestrators.ts";
import { startRenewal } from "../../../../agent/joining/renewal.ts";
import { memberApi } from "../../../../shared/agent-api/joining/join-shapes.ts";
import { connect } from "../../../../shared/http/client.ts";
import { createServer } from "../../../../shared/http/server.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { Teardown } from "../../../../shared/program/teardown.ts";
import { factsOf, renewalAt } from "../../../../shared/tls/credentials.ts";
import { newPrivateKey, requestFor } from "../../../../shared/tls/request.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { type JoinedMachine, joinCluster, keptBy } from "../../../support/cluster/members.ts";

const HOUR_MS = 3_600_000;
const log = createLog({ component: "test", level: "silent" });

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ agents: 0, config: { nodesPort: 0 } });
});
afterAll(() => cluster.stop());

/** Starts the renewal by a clock that is that much ahead. */
function renewing(
  { config, peering }: JoinedMachine,
  aheadMs: number,
  orchestratorUrl = config.orchestratorUrl,
): Teardown {
  const teardown = new Teardown(log);
  onTestFinished(() => teardown.run());
  const now = () => Date.now() + aheadMs;
  const orchestrators = createOrchestrators(orchestratorUrl, log);
  startRenewal({ peering, orchestrators, nodeId: config.nodeId, files: filesOf(config), now, log }, teardown);
  return teardown;
}

const serial = (socket: TLSSocket) => socket.getPeerX509Certificate()?.serialNumber;

test("a renewal is kept on the disk and shown on the next connection, while an open one goes on", async () => {
  const machine = await joinCluster(cluster);
  const { member, apiDoor } = machine.peering;
  const before = keptBy(machine.config).credentials;
  const server = createServer(log, { door: apiDoor });
  server.get("/", () => "here");
  await server.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => server.close());
  const { port } = server.server.address() as AddressInfo;
  const kept = new Agent({
    keepAlive: true,
    maxSockets: 1,
    ca: before.authority,
    checkServerIdentity: () => undefined,
  });
  onTestFinished(() => kept.destroy());
  const ask = () =>
    new Promise<TLSSocket>((resolve, reject) => {
      const sent = request({ agent: kept, host: "127.0.0.1", port }, (response) => {
        const socket = response.socket as TLSSocket;
        response.resume().once("end", () => resolve(socket));
      });
      sent.once("error", reject).end();
    });
  const first = await ask();
  const former = serial(first);

  renewing(machine, 48 * HOUR_MS + 60_000);
  await expect.poll(() => member?.credentials.current.certificate).not.toBe(before.certificate);
  const after = keptBy(machine.config).credentials;
  expect(after).toEqual(member?.credentials.current);
  expect(after.key).toBe(before.key);
  expect(factsOf(after.certificate).until).toBeGreaterThanOrEqual(factsOf(before.certificate).until);

  // The same connection: its certificate is the former one.
  expect(await ask()).toBe(first);
  const fresh = connectTls({ host: "127.0.0.1", port, ca: before.authority, checkServerIdentity: () => undefined });
  onTestFinished(() => void fresh.destroy());
  await new Promise((resolve) => fresh.once("secureConnect", resolve));
  expect(serial(fresh)).not.toBe(former);
});

test("before two thirds of its time the certificate stays", async () => {
  const machine = await joinCluster(cluster);
  const { certificate } = keptBy(machine.config).credentials;
  const { from, until } = factsOf(certificate);
  expect((renewalAt({ from, until }) - (from + HOUR_MS)) / (until - from - HOUR_MS)).toBeCloseTo(2 / 3);
  await renewing(machine, 47 * HOUR_MS).run();
  expect(keptBy(machine.config).credentials.certificate).toBe(certificate);
});

test("a renewal that fails changes nothing, on the disk or in the program", async () => {
  const machine = await joinCluster(cluster);
  const before = keptBy(machine.config);
  await renewing(machine, 49 * HOUR_MS, "https://127.0.0.1:1").run();
  expect(keptBy(machine.config)).toEqual(before);
  expect(machine.peering.member?.credentials.current).toEqual(before.credentials);
});

test("a renewal puts a key back that was lost while the agent ran", async () => {
  const machine = await joinCluster(cluster);
  const { key, certificate } = keptBy(machine.config).credentials;
  await rm(join(machine.config.stateDir, "membership"), { recursive: true });
  renewing(machine, 48 * HOUR_MS + 60_000);
  await expect.poll(() => filesOf(machine.config).read()?.credentials.key).toBe(key);
  expect(keptBy(machine.config).credentials.certificate).not.toBe(certificate);
});

test("another key gets no certificate of the node, nor does a node that was removed", async () => {
  const { config, peering } = await joinCluster(cluster);
  const connection = connect(memberApi, {
    url: config.orchestratorUrl,
    name: "the orchestrator",
    headers: { authorization: `Bearer ${peering.nodeToken}` },
    meeting: peering.meeting,
  });
  onTestFinished(() => connection.close());
  const other = await requestFor(await newPrivateKey());
  await expect(connection.call.renew({ body: { request: other } })).rejects.toThrow("a new key joins with a new token");
  await cluster.database.query("delete from members where node_id = ?", config.nodeId);
  const own = await requestFor(keptBy(config).credentials.key);
  await expect(connection.call.renew({ body: { request: own } })).rejects.toThrow(
    `node '${config.nodeId}' is not on this platform any more`,
  );
});

/** Many connections without credentials: how many a client gets, and that the platform works on beside them. */

import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";

/** Longer than the kernel takes to ask five times for a connection whose first packets were lost. */
const WAIT = { timeout: 60_000 };
const TOTAL = 40;
const PER_ADDRESS = 6;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ config: { apiConnections: TOTAL, apiConnectionsPerAddress: PER_ADDRESS } });
});
afterAll(() => cluster.stop());

/** Opens a connection from an address of the machine's own network that no program of the platform uses. */
function idle(localAddress: string): Socket {
  const socket = connect({ port: Number(new URL(cluster.url).port), host: "127.0.0.1", localAddress });
  socket.on("error", () => undefined).resume();
  onTestFinished(() => void socket.destroy());
  return socket;
}

const open = (sockets: readonly Socket[]) => sockets.filter(({ closed }) => !closed).length;

describe("idle connections", () => {
  test("of one address are few, and another address gets in", async () => {
    const flood = Array.from({ length: 30 }, () => idle("127.0.0.2"));
    await expect.poll(() => open(flood), WAIT).toBe(PER_ADDRESS);
    const other = idle("127.0.0.3");
    other.write("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
    let text = "";
    other.on("data", (chunk) => (text += chunk.toString()));
    await expect.poll(() => text, WAIT).toMatch(/^HTTP\/1.1 204/);
  });

  test("from many addresses leave room for callers with a key and for nodes", async () => {
    const flood = Array.from({ length: 200 }, (_, index) => idle(`127.0.1.${1 + (index % 100)}`));
    await expect.poll(() => open(flood), WAIT).toBeLessThanOrEqual(TOTAL);
    const created = await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    expect(created.status, created.text).toBe(201);
    const answers = await Promise.all(Array.from({ length: 10 }, () => cluster.ask("GET", "/v2/sandboxes")));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    await cluster.agent.beat();
  });
});

/**
 * Many connections that send no request: how many a client gets at the edge and at a node's proxy, and that other clients
 * are served.
 */

import { get } from "node:http";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { EdgeRoute } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { RawClient } from "../../../support/peers/raw-client.ts";
import { type FrontDoor, httpBackend, openFrontDoor, routed, routing } from "./front-door.ts";

/** Longer than the kernel takes to ask five times for a connection whose first packets were lost. */
const WAIT = { timeout: 60_000 };
const TOTAL = 40;
const PER_ADDRESS = 6;

interface Place {
  readonly door: FrontDoor;
  readonly route: EdgeRoute;
  readonly port: number;
}

async function place(options: { sameHost?: boolean; perAddress?: number } = {}): Promise<Place> {
  const room = {
    total: TOTAL,
    reserved: 5,
    perAddress: options.perAddress ?? PER_ADDRESS,
  };
  const door = await openFrontDoor({
    room,
    sameHost: options.sameHost ?? true,
  });
  onTestFinished(() => door.stop());
  const route = door.add();
  const server = await httpBackend(route.address, (request, response) => {
    if (request.url === "/stream") response.write("begun;");
    else response.end("served");
  });
  onTestFinished(() => server.close());
  return { door, route, port: server.port };
}

/** Opens connections; every other one begins a request that it does not finish. */
function flood(port: number, addresses: readonly string[]): Socket[] {
  return addresses.map((localAddress, index) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress });
    socket.on("error", () => undefined).resume();
    if (index % 2 === 1) socket.write("GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ");
    onTestFinished(() => void socket.destroy());
    return socket;
  });
}

const open = (sockets: readonly Socket[]) => sockets.filter(({ closed }) => !closed).length;
const oneAddress = Array.from({ length: 60 }, () => "127.0.0.2");
const manyAddresses = Array.from({ length: 200 }, (_, index) => `127.0.1.${1 + (index % 100)}`);

/** Sends one request from this address of the machine, which no program of the platform uses. */
function visit({ door, route, port }: Place, localAddress: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = routed(route, port);
    const request = get(
      {
        port: door.port,
        host: "127.0.0.1",
        localAddress,
        headers,
        agent: false,
      },
      (response) => {
        let text = "";
        response.on("data", (chunk: Buffer) => (text += chunk.toString()));
        response.on("end", () => resolve(text));
      },
    );
    request.on("error", reject);
  });
}

test("one address gets its share of the edge's connections, and another visitor is served", async () => {
  const here = await place();
  const sockets = flood(here.door.port, oneAddress);
  await expect.poll(() => open(sockets), WAIT).toBe(PER_ADDRESS);
  expect(await visit(here, "127.0.0.3")).toBe("served");
  expect(open(sockets)).toBe(PER_ADDRESS);
});

test("connections without a request from many addresses make room for visitors, and no visitor with a forwarded request is cut off", async () => {
  const here = await place();
  const stream = await RawClient.open(here.door.port);
  onTestFinished(() => stream.destroy());
  stream.send(`GET /stream HTTP/1.1\r\n${routing(here.route, here.port)}\r\n`);
  await stream.until((received) => received.includes("begun;"));
  const sockets = flood(here.door.port, manyAddresses);
  await expect.poll(() => open(sockets), WAIT).toBeLessThanOrEqual(TOTAL);
  expect(await visit(here, "127.0.0.3")).toBe("served");
  expect([stream.closed, stream.ended]).toEqual([false, false]);
});

test("clients on loopback get all the connections they open while another address floods the edge", async () => {
  const here = await place();
  const kept = await Promise.all(
    Array.from({ length: 4 * PER_ADDRESS }, async () => {
      const client = await RawClient.open(here.door.port);
      onTestFinished(() => client.destroy());
      return client;
    }),
  );
  const request = `GET / HTTP/1.1\r\n${routing(here.route, here.port)}\r\n`;
  for (const client of kept) client.send(request);
  await Promise.all(kept.map((client) => client.until((received) => received.includes("served"))));
  const sockets = flood(here.door.port, oneAddress);
  await expect.poll(() => open(sockets), WAIT).toBeLessThanOrEqual(PER_ADDRESS);
  for (const client of kept) client.send(request);
  const answers = await Promise.all(kept.map((client) => client.until((text) => text.split("served").length === 3)));
  expect(answers.map((text) => text.split("served").length)).toEqual(kept.map(() => 3));
});

test("a node's proxy serves the edge while others hold every connection they get", async () => {
  const here = await place({ sameHost: false, perAddress: TOTAL });
  const proxyPort = Number(new URL(here.door.nodeProxyUrl).port);
  const sockets = flood(proxyPort, [...oneAddress, ...manyAddresses]);
  await expect.poll(() => open(sockets), WAIT).toBeLessThanOrEqual(TOTAL);
  const answers = await Promise.all(Array.from({ length: 10 }, () => visit(here, "127.0.0.1")));
  expect(answers).toEqual(Array(10).fill("served"));
});

/** What a proxy keeps of the ports of a sandbox that its visitors have tried. */

import { createServer, get, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Connections } from "../../../../../shared/proxy/sending/connections.ts";
import type { NextHop } from "../../../../../shared/proxy/sending/forward-plan.ts";
import { DialledAgent, type DialledArgs } from "../../../../../shared/proxy/sockets/agents.ts";
import { areCollected } from "../../../../support/runner/garbage.ts";

const hop = (port: number): NextHop => ({
  key: `direct ${port}`,
  dial: () => Promise.reject(new Error("nothing listens")),
  added: [],
  idleMs: 1_000,
  ours: false,
  proxied: false,
});

async function listening(): Promise<Server> {
  const server = createServer((_request, response) => response.end("ok"));
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

async function dialled(server: Server): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  await new Promise((resolve) => socket.once("connect", resolve));
  onTestFinished(() => void socket.destroy());
  return socket;
}

test("a visitor who tries every port while another request is under way does not fill the memory", () => {
  const connections = new Connections(() => true);
  for (let port = 1; port <= 1_000; port++) connections.agents("execution", hop(port));
  expect(connections.hops("execution")).toBeLessThanOrEqual(64);
});

test("a next hop with a connection is remembered while a visitor tries other ports", async () => {
  const server = await listening();
  const connections = new Connections(() => true);
  const used = { ...hop(8_000), dial: () => dialled(server) };
  const { keeping } = connections.agents("execution", used);
  const answered = new Promise((resolve, reject) => {
    get({ agent: keeping, path: "/" }, resolve).on("error", reject);
  });
  await answered;
  for (let port = 1; port <= 1_000; port++) connections.agents("execution", hop(port));
  expect(connections.agents("execution", used).keeping).toBe(keeping);
});

test("a kept connection does not keep the exchange that has opened it", async () => {
  const server = await listening();
  const agent = new DialledAgent({ dial: () => dialled(server), keeps: true, onOpen: () => undefined });
  const exchange = async () => {
    const own = { signal: new AbortController().signal };
    const args: DialledArgs = { agent, path: "/", dialSignal: () => own.signal };
    await new Promise<void>((resolve, reject) => {
      get(args, (answer) => {
        agent.mayKeep(answer.socket, 60_000);
        answer.resume().once("end", () => resolve());
      }).on("error", reject);
    });
    return new WeakRef(own);
  };
  const own = await exchange();
  await expect.poll(() => areCollected(own)).toBe(true);
  expect(Object.values(agent.freeSockets).flat()).toHaveLength(1);
});

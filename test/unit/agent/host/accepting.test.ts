/** Servers whose system has no room for a connection: the error says so, and the program goes on. */

import { Server } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { openNames } from "../../../../agent/egress/dns/names.ts";
import { startDns } from "../../../../agent/egress/dns/resolver.ts";
import { createServer } from "../../../../shared/http/server.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { listen } from "../../../../shared/proxy/listening/listen.ts";

const log = createLog({ component: "test", level: "silent" });
const room = { total: 9, most: 9, few: 1, reserved: 1 };
const noServers = () => Promise.resolve([]);

const resolver = {
  listen: { address: "127.0.0.1", port: 0 },
  upstreams: noServers,
  names: openNames(noServers),
  askerAt: () => undefined,
  room: { questions: room, dnsConnections: room },
  log,
};

test.each([
  [
    "a proxy",
    async () => {
      const proxy = await listen("127.0.0.1", 0, { handle: () => undefined, refusalHeaders: [] });
      return () => proxy.close();
    },
  ],
  [
    "the resolver",
    async () => {
      const dns = await startDns(resolver);
      return () => dns.stop();
    },
  ],
  [
    "an API",
    async () => {
      const server = createServer(log);
      await server.listen({ host: "127.0.0.1", port: 0 });
      return () => server.close();
    },
  ],
])("%s survives a connection that cannot be accepted", async (_, start) => {
  const opened = vi.spyOn(Server.prototype, "listen");
  onTestFinished(() => opened.mockRestore());
  const stop = await start();
  onTestFinished(() => void stop());
  const [server] = opened.mock.contexts as Server[];
  const refused = Object.assign(new Error("accept ENFILE"), { code: "ENFILE" });
  expect(() => server?.emit("error", refused)).not.toThrow();
  expect(server).toBeInstanceOf(Server);
});

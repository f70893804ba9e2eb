/**
 * Carries out the agent's messages in the egress process. The process knows only what they contain and serves nothing
 * before them: it passes no connection and answers no question of an address without a sandbox.
 */

import type { Socket } from "node:net";
import { descriptorLimit } from "../../shared/program/descriptors.ts";
import type { Log } from "../../shared/program/log.ts";
import { Teardown } from "../../shared/program/teardown.ts";
import type { Transform } from "./carry/carried.ts";
import { largeBuffers } from "./carry/intake.ts";
import type { Begin, FromEgress, SandboxEgress, ToEgress } from "./channel/messages.ts";
import { pendingValues } from "./channel/pending-values.ts";
import { proxyRequest } from "./company/arrival.ts";
import { check } from "./destinations/check.ts";
import { ownAddresses } from "./destinations/own-addresses.ts";
import { openNames } from "./dns/names.ts";
import { type DnsSockets, startDns } from "./dns/resolver.ts";
import { upstreamResolvers } from "./dns/upstream-resolvers.ts";
import { openShares, roomOfEgress } from "./limits/shares.ts";
import { listen } from "./listener.ts";
import { openTrust } from "./rewrite/trust.ts";
import { openSandboxTraffic, type SandboxTraffic } from "./traffic/sandbox-traffic.ts";

interface EgressSockets {
  /** TCP that is redirected to this process. */
  readonly redirected: number;
  /** Questions for names, over UDP and TCP. */
  readonly dns: DnsSockets;
}

export interface EgressDeps {
  /** Descriptors of its sockets: bound, and not listening yet. */
  readonly sockets: EgressSockets;
  readonly send: (message: FromEgress) => void;
  readonly transform: Transform;
  readonly log: Log;
}

export interface Egress {
  /** Never rejects: failures are reported to the agent. */
  take(message: ToEgress): Promise<void>;
  stop(): Promise<void>;
}

export function openEgress({ sockets, send, transform, log }: EgressDeps): Egress {
  const teardown = new Teardown(log);
  const values = pendingValues(send);
  let parts: EgressParts | undefined;

  const begin = async (message: Begin): Promise<void> => {
    if (parts !== undefined) throw new Error("the egress process has begun already");
    parts = createEgressParts(message, { send, transform, log, values });
    const { names, servers, taken, askerAt, end, room } = parts;
    teardown.add("names", () => names.stop());
    const dns = await startDns({ listen: sockets.dns, upstreams: servers, names, askerAt, room, log });
    teardown.add("resolver", () => dns.stop());
    const listener = await listen(sockets.redirected, taken, log);
    teardown.add("listener", () => listener.stop());
    teardown.add("sandboxes", end);
    send({ is: "ready" });
  };

  const answered = async (id: number, answer: () => FromEgress | Promise<FromEgress>): Promise<void> => {
    try {
      send(await answer());
    } catch (error) {
      send({ is: "failed", id, message: error instanceof Error ? error.message : "unknown" });
    }
  };

  return {
    take(message) {
      switch (message.is) {
        case "begin":
          return begin(message);
        case "resolved":
          values.came(message);
          return Promise.resolve();
        case "set":
        case "forget":
        case "check": {
          const { id } = message;
          return answered(id, () => {
            if (parts === undefined) throw new Error("not begun");
            if (message.is === "check") return parts.check(message);
            if (message.is === "set") parts.set(message.sandbox);
            else parts.forget(message.address);
            return { is: "done", id };
          });
        }
      }
    },
    stop: () => teardown.run(),
  };
}

type EgressParts = ReturnType<typeof createEgressParts>;
type EgressPartsDeps = Omit<EgressDeps, "sockets"> & { readonly values: ReturnType<typeof pendingValues> };

/** Applies everything in `begin`, without opening a socket. */
function createEgressParts(begin: Begin, { send, transform, log, values }: EgressPartsDeps) {
  const sandboxes = new Map<string, SandboxTraffic>();
  const servers = upstreamResolvers(begin.dnsUpstream);
  const names = openNames(servers);
  const { authority, connectionsPerSandbox, proxyAllowedRanges, companyProxies } = begin;
  const isOwn = ownAddresses();
  const trust = openTrust(begin.extraCertificates);
  const buffers = largeBuffers();
  const room = roomOfEgress(descriptorLimit(), connectionsPerSandbox);
  const shares = openShares(room.connections, "connections to the outside", log);
  const shared = { names, isOwn, proxyAllowedRanges, transform, authority, trust, shares, buffers, log };

  const forget = (address: string) => {
    const sandbox = sandboxes.get(address);
    sandbox?.end();
    sandboxes.delete(address);
    if (sandbox === undefined) return;
    values.drop(sandbox.executionId);
    values.report();
  };
  const set = (sandbox: SandboxEgress) => {
    const { address, executionId, sandboxId, policy } = sandbox;
    const before = sandboxes.get(address);
    values.drop(executionId);
    if (before?.executionId === executionId) return before.replace(policy);
    // The address has another owner: no flow of the previous owner may continue.
    forget(address);
    const deps = {
      ...shared,
      say: (entries, suppressed) => send({ is: "decisions", sandboxId, entries, suppressed }),
      resolve: (placeholder, host) => values.ask({ executionId, placeholder, host }),
    } satisfies Parameters<typeof openSandboxTraffic>[1];
    sandboxes.set(address, openSandboxTraffic(sandbox, deps));
  };
  for (const sandbox of begin.sandboxes) set(sandbox);

  return {
    names,
    servers,
    room,
    set,
    forget,
    askerAt: (source: string) => sandboxes.get(source),
    taken: (socket: Socket) => {
      const sandbox = sandboxes.get(socket.remoteAddress ?? "");
      const direct = socket.localAddress === begin.gateway;
      // A client without a policy, or one that takes this process for a proxy where there is none.
      if (sandbox === undefined || (direct && companyProxies === undefined)) socket.resetAndDestroy();
      else if (direct && companyProxies !== undefined) sandbox.take(socket, (one) => proxyRequest(one, companyProxies));
      else sandbox.take(socket);
    },
    async check({ id, address, flow }: Extract<ToEgress, { is: "check" }>): Promise<FromEgress> {
      const sandbox = sandboxes.get(address);
      if (sandbox === undefined) throw new Error("no sandbox has this address");
      return { is: "checked", id, ...(await check(flow, sandbox.policy, shared)) };
    },
    end: () => {
      for (const address of sandboxes.keys()) forget(address);
    },
  };
}

/** How a connection of a sandbox says where it wants to go: by its own destination, or as a request to the node's proxy. */

import type { Socket } from "node:net";
import type { ConnectionRequest } from "../../../shared/policy/decide.ts";
import type { EgressPolicy } from "../../../shared/policy/egress-policy.ts";
import { sendRaw } from "../../../shared/proxy/listening/answer.ts";
import type { CompanyProxies } from "../channel/messages.ts";
import { type FoundTarget, findTarget, type TargetDeps } from "../destinations/target.ts";
import { answerOf } from "../rewrite/answer.ts";
import { Refusal } from "../rewrite/request-head.ts";
import { manner, sniff } from "../sniff/sniff.ts";
import { findCompanyTarget } from "./company-target.ts";
import { afterHead, PROXY_MANNER, readProxyRequest } from "./proxy-request.ts";

interface Found extends FoundTarget {
  readonly request: ConnectionRequest;
}

export interface Arrival {
  /** For the log; of a request by name, the address is empty until the name is resolved. */
  readonly address: string;
  readonly port: number;
  readonly hostname?: string;
  /** Bytes that were read already, to be sent first. */
  readonly first: Buffer;
  /** HTTP requests whose first one is in `first`, each with its whole address. */
  readonly plain: boolean;
  find(policy: EgressPolicy, deps: TargetDeps): Promise<Found>;
  /** Called before the destination's first byte. */
  readonly accept: () => void;
  /** Tells the client why it gets nothing; resolves when that is sent. Undefined where the protocol cannot say it. */
  readonly refuse?: (status: number, text: string) => Promise<void>;
}

/** Undefined when the connection closed meanwhile, or asked for nothing. */
export async function redirected(socket: Socket, policy: EgressPolicy): Promise<Arrival | undefined> {
  const to = { address: socket.localAddress ?? "", port: socket.localPort ?? 0 };
  const how = manner(to.port, policy);
  const sniffed = how === undefined ? { first: Buffer.alloc(0) } : await sniff(socket, how);
  if (sniffed === undefined) return undefined;
  const named = "hostname" in sniffed ? { hostname: sniffed.hostname } : {};
  const request: ConnectionRequest = { ...to, protocol: "tcp", ...named };
  return {
    ...to,
    ...named,
    first: sniffed.first,
    plain: false,
    find: async (policy, deps) => ({ request, ...(await findTarget(request, policy, deps)) }),
    accept: () => undefined,
  };
}

export async function proxyRequest(socket: Socket, proxies: CompanyProxies): Promise<Arrival | undefined> {
  const sniffed = await sniff(socket, PROXY_MANNER);
  if (sniffed === undefined) return undefined;
  const refuse = (status: number, text: string) =>
    new Promise<void>((resolve) => {
      socket.on("error", () => undefined);
      socket.once("close", () => resolve());
      sendRaw(socket, answerOf(new Refusal(status, text)));
    });
  const asked = sniffed.hostname === undefined ? undefined : readProxyRequest(sniffed.hostname);
  if (asked === undefined) {
    await refuse(400, "this is the node's proxy: it takes CONNECT host:port, and requests for http:// addresses");
    return undefined;
  }
  const { kind, host, port } = asked;
  const named = /^[\d.]+$/.test(host) ? { address: host } : { address: "", hostname: host };
  return {
    ...named,
    port,
    first: kind === "tunnel" ? afterHead(sniffed.first) : sniffed.first,
    plain: kind === "plain",
    find: (policy, deps) => findCompanyTarget(asked, policy, proxies, deps),
    accept: () => void (kind === "tunnel" && socket.write("HTTP/1.1 200 Connection established\r\n\r\n")),
    refuse,
  };
}

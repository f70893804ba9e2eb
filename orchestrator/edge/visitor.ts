/** Collects what the edge needs from a request, in one pass over its headers. Pure. */

import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { plainAddress } from "../../shared/http/connections/client-address.ts";
import { headerValue } from "../../shared/proxy/raw-headers.ts";
import type { VisitorTokens } from "./sandbox-lookup.ts";
import { readSigned } from "./signed-url.ts";
import type { Addressed } from "./target.ts";

export interface Visitor extends Addressed {
  /** Values of the traffic token headers, each with the header's name. */
  readonly trafficTokens: readonly { readonly header: string; readonly value: string }[];
  /** Values of `X-Access-Token`, which names the sandbox of a request that nothing else names. */
  readonly envdTokens: readonly string[];
  /** Origin-form, or `*`. */
  readonly path: string;
  /** Host of an absolute-form target: replaces Host (RFC 9112 §3.2.2). */
  readonly absoluteHost: string | undefined;
}

export const TRAFFIC_TOKEN_HEADERS: ReadonlySet<string> = new Set([
  "e2b-traffic-access-token",
  "svc-traffic-access-token",
]);

/** Undefined for a request target that is neither a path nor an absolute URL. */
export function readVisitor(url: string, rawHeaders: readonly string[]): Visitor | undefined {
  const hosts: string[] = [];
  const ids: string[] = [];
  const ports: string[] = [];
  const envdTokens: string[] = [];
  const trafficTokens: { header: string; value: string }[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    // The names that matter have one of these lengths; this skips most headers without a copy.
    if (name.length !== 4 && name.length !== 14 && name.length !== 16 && name.length !== 24) continue;
    const value = rawHeaders[at + 1] ?? "";
    const lower = name.toLowerCase();
    if (lower === "host") hosts.push(value);
    else if (lower === "e2b-sandbox-id" || lower === "svc-sandbox-id") ids.push(value);
    else if (lower === "e2b-sandbox-port" || lower === "svc-sandbox-port") ports.push(value);
    else if (lower === "x-access-token") envdTokens.push(value);
    else if (TRAFFIC_TOKEN_HEADERS.has(lower)) trafficTokens.push({ header: lower, value });
  }
  const target = readTarget(url, hosts);
  return target === undefined
    ? undefined
    : {
        hosts: target.hosts,
        ids,
        ports,
        envdTokens,
        trafficTokens,
        path: target.path,
        absoluteHost: target.absoluteHost,
      };
}

type RequestTarget = Pick<Visitor, "hosts" | "path" | "absoluteHost">;

function readTarget(url: string, hosts: readonly string[]): RequestTarget | undefined {
  if (url.startsWith("/") || url === "*") return { hosts, path: url, absoluteHost: undefined };
  const absolute = /^https?:\/\/([^/?#@\\]+)([/?][^#]*)?$/i.exec(url);
  if (absolute === null || hosts.length > 1) return undefined;
  const rest = absolute[2] ?? "/";
  const host = absolute[1] ?? "";
  return { hosts: [host], path: rest.startsWith("/") ? rest : `/${rest}`, absoluteHost: host };
}

export const SCHEME_HEADER = "x-forwarded-proto";

/**
 * Reads whether a server in a sandbox has to be told that its client speaks HTTPS, which ends at the edge: servers write the
 * scheme into redirects, and compare it with Origin. False where a trusted proxy, which has its own client, tells it already.
 */
export function schemeTeller(isProxy: (address: string) => boolean = () => false) {
  return ({ socket, rawHeaders }: Pick<IncomingMessage, "socket" | "rawHeaders">): boolean =>
    (socket as Partial<TLSSocket>).encrypted === true &&
    (headerValue(rawHeaders, SCHEME_HEADER) === undefined || !isProxy(plainAddress(socket.remoteAddress ?? "")));
}

/** Without the query. */
export function pathOnly(path: string): string {
  return path.split(/[?#]/, 1)[0] ?? "";
}

/** What the visitor shows for a paused sandbox. */
export function tokensOf({ method = "", rawHeaders }: IncomingMessage, visitor: Visitor): VisitorTokens {
  return {
    trafficAccessTokens: visitor.trafficTokens.map(({ value }) => value),
    envdAccessToken: headerValue(rawHeaders, "x-access-token"),
    signed: readSigned(method, visitor.path),
    apiKey: headerValue(rawHeaders, "x-api-key"),
  };
}

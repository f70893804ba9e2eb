/**
 * Checks a sandbox's request before any byte of it is forwarded, and makes the head to send. Pure. Node's parser reads
 * the framing; this refuses what two parsers could read differently.
 */

import { nameOnWire } from "../../../shared/policy/names.ts";
import type { HeaderEdits } from "../../../shared/proxy/raw-headers.ts";

export interface ReceivedHead {
  readonly method: string;
  /** The target as the request line has it. */
  readonly url: string;
  readonly httpVersion: string;
  /** Name, value, name, value. */
  readonly rawHeaders: readonly string[];
}

/** The server that the connection leads to. */
export interface Destination {
  /** As `hostName` spells it. */
  readonly hostname: string;
  readonly port: number;
  readonly tls: boolean;
}

/** An answer in place of the destination's. `text` is for people in the sandbox. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}

/** The path to ask for. @throws {Refusal} */
export function checkHead(head: ReceivedHead, destination: Destination): string {
  const { method, url, httpVersion } = head;
  if (method === "CONNECT") throw new Refusal(400, "CONNECT is not possible here");
  const hosts = valuesOf(head.rawHeaders, "host");
  if (hosts.length > 1) throw new Refusal(400, "the request has more than one Host header");
  const [host] = hosts;
  if (host === undefined) throw new Refusal(400, "the request has no Host header");
  if (!isDestination(host, destination)) throw misdirected(host, destination);
  checkFraming(head.rawHeaders, httpVersion);
  if (url.startsWith("/")) return url;
  if (url === "*" && method === "OPTIONS") return url;
  return pathOfAbsolute(url, destination);
}

function checkFraming(rawHeaders: readonly string[], httpVersion: string): void {
  const lengths = valuesOf(rawHeaders, "content-length");
  const codings = valuesOf(rawHeaders, "transfer-encoding");
  if (lengths.length > 1) throw new Refusal(400, "the request has more than one Content-Length header");
  if (codings.length === 0) return;
  if (lengths.length > 0) throw new Refusal(400, "the request has both Content-Length and Transfer-Encoding");
  if (httpVersion !== "1.1") throw new Refusal(400, "Transfer-Encoding needs HTTP/1.1");
  if (codings.length > 1 || codings[0]?.toLowerCase() !== "chunked")
    throw new Refusal(400, "the only Transfer-Encoding understood here is chunked");
}

// Clients of a proxy send the whole address; it must name the same server as Host.
function pathOfAbsolute(url: string, destination: Destination): string {
  const [, scheme = "", authority = "", path = ""] = /^(https?):\/\/([^/?#]*)([/?][^#]*)?$/i.exec(url) ?? [];
  if (scheme === "") throw new Refusal(400, "the request target is not a path");
  if (scheme.toLowerCase() !== (destination.tls ? "https" : "http") || !isDestination(authority, destination))
    throw misdirected(authority, destination);
  return path.startsWith("/") ? path : `/${path}`;
}

function isDestination(authority: string, { hostname, port }: Destination): boolean {
  const [, name, said] = /^([^:]+)(?::(\d{1,5}))?$/.exec(authority) ?? [];
  return name !== undefined && nameOnWire(name) === hostname && (said === undefined || Number(said) === port);
}

function misdirected(said: string, { hostname }: Destination): Refusal {
  const shown = said.slice(0, 200).replaceAll(/[^!-~]/g, "?");
  return new Refusal(421, `this connection was opened to ${hostname}; requests for "${shown}" cannot be sent over it`);
}

/** The values of a header in any spelling, one for each line. */
export function valuesOf(rawHeaders: readonly string[], name: string): readonly string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);
}

export function tokens(value: string): string[] {
  return value.split(",").map((token) => token.trim().toLowerCase());
}

/** Gateway interfaces (CGI, WSGI, Rack) show `X_Team` and `X-Team` to programs as one: here they count as one, too. */
function fieldOf(name: string): string {
  return name.toLowerCase().replaceAll("_", "-");
}

/** A request to the destination under a rule: rules override the client's headers of the same name. */
export interface Ruled {
  readonly edits: HeaderEdits & { readonly host: string };
  /** The headers of the rule: name, value, name, value, … */
  readonly added: readonly string[];
}

/** @param set the headers of the rule, with values */
export function ruled(
  { rawHeaders }: Pick<ReceivedHead, "rawHeaders">,
  { hostname, port }: Destination,
  set: ReadonlyMap<string, string>,
): Ruled {
  const said = /:(\d+)$/.exec(valuesOf(rawHeaders, "host")[0] ?? "") !== null;
  const fields = new Set([...set.keys()].map(fieldOf));
  const dropped = new Set(valuesOf(rawHeaders, "transfer-encoding").length > 0 ? ["te"] : ["te", "trailer"]);
  return {
    edits: {
      host: said ? `${hostname}:${port}` : hostname,
      drops: (name) => dropped.has(name) || fields.has(fieldOf(name)),
    },
    added: [...set].flat(),
  };
}

/**
 * The same request as an HTTP proxy wants it, with the whole address. A sandbox's own `Proxy-Authorization` goes nowhere: it
 * must not choose how this node shows itself to the proxy.
 */
export function forProxy(path: string, host: string, added: readonly string[], authorization?: string) {
  const shown = authorization === undefined ? [] : ["Proxy-Authorization", authorization];
  const others = added.filter((_, i) => added[i - (i % 2)]?.toLowerCase() !== "proxy-authorization");
  return { path: `http://${host}${path === "*" ? "" : path}`, added: [...others, ...shown] };
}

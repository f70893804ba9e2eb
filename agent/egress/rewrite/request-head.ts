/**
 * Checks a sandbox's request before any byte of it is forwarded, and makes the head to send. Pure. Node's parser reads
 * the framing; this refuses what two parsers could read differently.
 */

import { nameOnWire } from "../../../shared/policy/names.ts";

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

const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Headers of this hop only: the fixed ones, and those that `Connection` names. */
export function hopByHop(rawHeaders: readonly string[]): ReadonlySet<string> {
  const named = valuesOf(rawHeaders, "connection").flatMap((value) => tokens(value));
  return new Set([...HOP_BY_HOP, ...named]);
}

export function tokens(value: string): string[] {
  return value.split(",").map((token) => token.trim().toLowerCase());
}

/** Gateway interfaces (CGI, WSGI, Rack) show `X_Team` and `X-Team` to programs as one: here they count as one, too. */
export function fieldOf(name: string): string {
  return name.toLowerCase().replaceAll("_", "-");
}

const NO_FIELDS: ReadonlySet<string> = new Set();

/**
 * Returns the header lines in their spelling and order, without those of `names` (in lower case) and of `fields` (as
 * `fieldOf` spells them).
 */
export function without(rawHeaders: readonly string[], names: ReadonlySet<string>, fields = NO_FIELDS): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = "", value = ""] = [rawHeaders[i], rawHeaders[i + 1]];
    if (!names.has(name.toLowerCase()) && !fields.has(fieldOf(name))) kept.push(name, value);
  }
  return kept;
}

/** The headers for the destination; rules override the client's headers of the same name. */
export function outgoingHeaders(
  head: ReceivedHead,
  { hostname, port }: Destination,
  set: ReadonlyMap<string, string>,
): string[] {
  const { rawHeaders, method } = head;
  const said = /:(\d+)$/.exec(valuesOf(rawHeaders, "host")[0] ?? "") !== null;
  const dropped = new Set([...hopByHop(rawHeaders), "host"]);
  const ruled = new Set([...set.keys()].map(fieldOf));
  // Kept even if Connection names it: without its length the body would become the next request.
  dropped.delete("content-length");
  const lines = ["Host", said ? `${hostname}:${port}` : hostname, ...without(rawHeaders, dropped, ruled)];
  for (const [name, value] of set) lines.push(name, value);
  const chunked = valuesOf(rawHeaders, "transfer-encoding").length > 0;
  const trailers = valuesOf(rawHeaders, "trailer");
  if (chunked) lines.push("Transfer-Encoding", "chunked");
  if (chunked && trailers.length > 0) lines.push("Trailer", trailers.join(", "));
  // Node would begin a body of chunks where there is none.
  else if (!chunked && /^(POST|PUT|PATCH)$/.test(method) && valuesOf(rawHeaders, "content-length").length === 0)
    lines.push("Content-Length", "0");
  return lines;
}

const OF_THE_PROXY: ReadonlySet<string> = new Set(["proxy-authorization"]);

/**
 * The same request as an HTTP proxy wants it, with the whole address. A sandbox must not choose how this node shows
 * itself to the proxy. @param lines those of `outgoingHeaders`, whose first is Host
 */
export function forProxy(path: string, lines: readonly string[], authorization?: string) {
  const [, host = ""] = lines;
  const shown = authorization === undefined ? [] : ["Proxy-Authorization", authorization];
  return { path: `http://${host}${path === "*" ? "" : path}`, lines: [...without(lines, OF_THE_PROXY), ...shown] };
}

/** Name and value together. */
export function pairs(lines: readonly string[]): [string, string][] {
  const result: [string, string][] = [];
  for (let i = 0; i + 1 < lines.length; i += 2) result.push([lines[i] ?? "", lines[i + 1] ?? ""]);
  return result;
}

/** Header lists as Node's parser returns them (name, value, …): which headers cross a hop, and how. Pure. */

import { AnswerFault } from "./answer-fault.ts";
import { ROUTING_HEADERS } from "./hop-contract.ts";

/**
 * Never forwarded, in either direction (RFC 9110 §7.6.1). Code that needs `te` or `upgrade` adds them again; the part that
 * frames the body writes the framing.
 */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

/** Headers that `Connection` must not remove, because that would change the message's framing or target. */
const NOT_NOMINATED: ReadonlySet<string> = new Set(["content-length", "content-type", "host"]);

/** A trailer field may not frame, route or authenticate a message that has been acted on (RFC 9110 §6.5.1). */
const NOT_IN_TRAILERS: ReadonlySet<string> = new Set([
  ...ROUTING_HEADERS,
  "authorization",
  "content-encoding",
  "content-length",
  "content-range",
  "content-type",
  "cookie",
  "e2b-traffic-access-token",
  "host",
  "set-cookie",
  "svc-traffic-access-token",
  "trailer",
  "x-access-token",
]);

/** `empty`: a length of zero was sent. */
export type BodyFraming = "none" | "empty" | "length" | "chunked";

export interface RequestHead {
  readonly method: string;
  /** Origin-form, or `*`. */
  readonly path: string;
  readonly rawHeaders: readonly string[];
}

/** Changes to a request's headers for its server. */
export interface HeaderEdits {
  /** True: this header (lower-case name) does not reach the next hop. */
  readonly drops: (name: string, value: string) => boolean;
  /** Replaces the value of Host. */
  readonly host?: string | undefined;
}

/** Headers for the next hop only. */
export interface HopHeaders {
  /** Name, value, name, value, …, added last. */
  readonly added: readonly string[];
  /** The protocol that the client asks to switch to. */
  readonly upgrade: string | undefined;
}

/** Thrown for a request that cannot be forwarded with its meaning intact; the message is safe to send. */
export class UnforwardableError extends Error {
  override readonly name = "UnforwardableError";
}

export interface OutgoingHead {
  /** Name, value, name, value, … for the next hop. */
  readonly headers: string[];
  readonly framing: BodyFraming;
  /** The client waits for 100 before it sends the body. */
  readonly expectsContinue: boolean;
}

/** Node's client begins a chunked body for any other method whose head does not mention a body. */
const BODILESS_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"]);

/**
 * The headers of the request for the next hop, and how its body is framed.
 * @throws UnforwardableError when the body has a transfer coding other than chunked.
 */
export function outgoingHead(request: RequestHead, edits: HeaderEdits, hop: HopHeaders): OutgoingHead {
  const { rawHeaders } = request;
  const nominated = nominatedBy(rawHeaders);
  const facts: BodyFacts = { framing: "none", expectsContinue: false };
  const headers: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    const value = rawHeaders[at + 1] ?? "";
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower)) headers.push(...crossingAnyway(lower, value, facts, edits));
    else if (nominated?.has(lower) === true) continue;
    else if (lower === "host" && edits.host !== undefined) headers.push("Host", edits.host);
    else if (!edits.drops(lower, value)) {
      if (lower === "content-length") facts.framing = Number(value) === 0 ? "empty" : "length";
      else if (lower === "expect") facts.expectsContinue = /(?:^|\W)100-continue(?:$|\W)/i.test(value);
      headers.push(name, value);
    }
  }
  if (hop.upgrade !== undefined) headers.push("Connection", "Upgrade", "Upgrade", hop.upgrade);
  if (facts.framing === "none" && !BODILESS_METHODS.has(request.method)) headers.push("Content-Length", "0");
  headers.push(...hop.added);
  return { headers, framing: facts.framing, expectsContinue: facts.expectsContinue };
}

interface BodyFacts {
  framing: BodyFraming;
  expectsContinue: boolean;
}

/** Writes the hop-by-hop headers that the next hop needs. */
function crossingAnyway(lower: string, value: string, facts: BodyFacts, { drops }: HeaderEdits): readonly string[] {
  if (lower === "te") return /\btrailers\b/i.test(value) && !drops(lower, value) ? ["TE", "trailers"] : [];
  if (lower !== "transfer-encoding") return [];
  if (value.trim().toLowerCase() !== "chunked" || facts.framing === "chunked") {
    throw new UnforwardableError("only the chunked transfer coding is supported");
  }
  facts.framing = "chunked";
  return ["Transfer-Encoding", "chunked"];
}

/**
 * Response headers that may reach the client; `drops` is called with the lower-case name. Servers' answers are read more
 * leniently than they may be written, so a control character in a value becomes a space (RFC 9110 §5.5).
 * @throws {AnswerFault} for a NUL, which curl and browsers refuse too
 */
export function endToEnd(rawHeaders: readonly string[], drops: (name: string) => boolean): string[] {
  const nominated = nominatedBy(rawHeaders);
  const kept: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || nominated?.has(lower) === true || drops(lower)) continue;
    kept.push(name, headerText(name, rawHeaders[at + 1] ?? ""));
  }
  return kept;
}

const UNWRITABLE = /[^\t\x20-\x7e\x80-\xff]/;

/** @throws {AnswerFault} for a NUL */
function headerText(name: string, value: string): string {
  if (!UNWRITABLE.test(value)) return value;
  if (value.includes("\0")) throw new AnswerFault(`the header ${name} of its answer has a NUL byte`);
  return writableText(value);
}

/** A value or a reason phrase without the characters that Node does not write. */
export function writableText(text: string): string {
  return text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, " ");
}

/**
 * Trailer fields that may be forwarded. Some servers merge them into the headers, and gateways show `A_B` and `A-B` as one
 * name: what `drops` removes from the headers is removed from the trailers, in either spelling.
 */
export function forwardableTrailers(
  rawTrailers: readonly string[],
  drops: (name: string, value: string) => boolean,
): [string, string][] {
  const kept: [string, string][] = [];
  const named = endToEnd(rawTrailers, (name) => NOT_IN_TRAILERS.has(name.replaceAll("_", "-")));
  for (let at = 0; at + 1 < named.length; at += 2) {
    const name = named[at] ?? "";
    const value = named[at + 1] ?? "";
    if (!drops(name.toLowerCase().replaceAll("_", "-"), value)) kept.push([name, value]);
  }
  return kept;
}

/** Whether the head announces a body. */
export function announcesBody(rawHeaders: readonly string[]): boolean {
  const length = headerValue(rawHeaders, "content-length");
  return headerValue(rawHeaders, "transfer-encoding") !== undefined || (length !== undefined && Number(length) !== 0);
}

/** Methods that change nothing (RFC 9110 §9.2.1), so that a request may reach its sandbox twice. */
const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

export interface SentRequest {
  readonly method?: string | undefined;
  readonly rawHeaders: readonly string[];
}

/** Whether the request may be sent a second time: the sandbox may have carried it out already. */
export function isSafe({ method = "", rawHeaders }: SentRequest): boolean {
  // What was read of a body is lost.
  return SAFE.has(method) && !announcesBody(rawHeaders);
}

/** The first value of a header, or undefined. */
export function headerValue(rawHeaders: readonly string[], lowerName: string): string | undefined {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (name.length === lowerName.length && name.toLowerCase() === lowerName) return rawHeaders[at + 1];
  }
  return undefined;
}

/** Lower-case names listed in `Connection`, except the usual two; undefined for the usual case of none. */
function nominatedBy(rawHeaders: readonly string[]): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.length !== 10 || rawHeaders[at]?.toLowerCase() !== "connection") continue;
    const value = (rawHeaders[at + 1] ?? "").toLowerCase();
    if (value === "keep-alive" || value === "close") continue;
    for (const part of value.split(",")) {
      const name = part.trim();
      if (name !== "" && !NOT_NOMINATED.has(name)) (names ??= new Set()).add(name);
    }
  }
  return names;
}

/** The headers of a 101: what the server has chosen, and its own headers. */
export function switchingHeaders(rawHeaders: readonly string[], keepsBack: (name: string) => boolean): string[] {
  const upgrade = headerValue(rawHeaders, "upgrade");
  const own = ["Connection", "Upgrade", ...(upgrade === undefined ? [] : ["Upgrade", writableText(upgrade)])];
  try {
    return [...own, ...endToEnd(rawHeaders, (name) => name === "content-length" || keepsBack(name))];
  } catch {
    // The server has switched already, so headers of which one cannot be written are left out.
    return own;
  }
}

/** The head of an answer as it is sent; its body, if any, follows. */
export function headText(statusCode: number, statusMessage: string, headers: readonly string[]): string {
  let text = `HTTP/1.1 ${statusCode} ${writableText(statusMessage)}\r\n`;
  for (let at = 0; at + 1 < headers.length; at += 2) text += `${headers[at]}: ${headers[at + 1]}\r\n`;
  return `${text}\r\n`;
}

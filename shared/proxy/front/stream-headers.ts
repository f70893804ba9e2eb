/** The headers of an exchange between HTTP/2, towards a client, and HTTP/1.1, towards a server of this program. Pure. */

import type { OutgoingHttpHeaders } from "node:http2";

/** Headers of one connection: they say nothing about the message, and HTTP/2 forbids them. */
const OF_A_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);
/** Of these Node writes one line by HTTP/2, and throws for several; of several values the first counts, as browsers read them. */
const SINGLE: ReadonlySet<string> = new Set([
  "access-control-allow-credentials",
  "access-control-max-age",
  "access-control-request-method",
  "age",
  "authorization",
  "content-length",
  "content-location",
  "content-md5",
  "content-range",
  "content-type",
  "date",
  "dnt",
  "etag",
  "expires",
  "from",
  "host",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "last-modified",
  "location",
  "max-forwards",
  "proxy-authorization",
  "range",
  "referer",
  "retry-after",
  "tk",
  "upgrade-insecure-requests",
  "user-agent",
  "x-content-type-options",
]);
/** Node writes one line of these too, but they are lists: several lines mean the same as one (RFC 9110 §5.3). */
const LISTED: ReadonlySet<string> = new Set(["content-encoding", "content-language"]);

export interface StreamRequest {
  readonly method: string;
  readonly path: string;
  /** The host that the client means; empty where it names none. */
  readonly authority: string;
  /** Name, value, name, value, … of the request by HTTP/1.1, `Host` included. */
  readonly headers: readonly string[];
}

/**
 * @param rawHeaders name, value, name, value, … as they came
 * @param hasBody whether more follows behind the headers
 * @returns undefined: a client must not send that
 */
export function readStreamRequest(rawHeaders: readonly string[], hasBody: boolean): StreamRequest | undefined {
  const { pseudo, host, cookies, fields } = sorted(rawHeaders);
  const [method = "", path = ""] = [pseudo.get(":method"), pseudo.get(":path")];
  const authority = pseudo.get(":authority") ?? host ?? "";
  const differs = host !== undefined && host.toLowerCase() !== authority.toLowerCase();
  if (method === "" || differs || !/^[/*][!-~\u0080-\u00ff]*$/.test(path)) return undefined;
  const hasLength = fields.some((text, at) => at % 2 === 0 && text === "content-length");
  const isChunked = hasBody && !hasLength;
  const headers = ["host", authority];
  // By HTTP/1.1 trailers follow chunks only, and Node throws for their names in another head.
  for (const [name, value] of pairs(fields)) if (isChunked || name !== "trailer") headers.push(name, value);
  if (cookies.length > 0) headers.push("cookie", cookies.join("; "));
  if (!hasLength) headers.push(...framing(method, hasBody));
  return { method, path, authority, headers };
}

/** How a message without a length says where its body ends. */
function framing(method: string, hasBody: boolean): readonly string[] {
  if (hasBody) return ["transfer-encoding", "chunked"];
  return ["POST", "PUT", "PATCH"].includes(method) ? ["content-length", "0"] : [];
}

function sorted(rawHeaders: readonly string[]) {
  const pseudo = new Map<string, string>();
  const fields: string[] = [];
  const cookies: string[] = [];
  let host: string | undefined;
  for (const [name, value] of pairs(rawHeaders)) {
    if (name.startsWith(":")) pseudo.set(name, value);
    else if (name === "host") host = value;
    // HTTP/2 may send each cookie by itself (RFC 9113 §8.2.3), and HTTP/1.1 has one header.
    else if (name === "cookie") cookies.push(value);
    else if (!OF_A_CONNECTION.has(name)) fields.push(name, value);
  }
  return { pseudo, host, cookies, fields };
}

/** The transfer codings besides chunked, which HTTP/2 cannot name; empty: the body is as it is. */
export function bodyCodings(rawHeaders: readonly string[]): readonly string[] {
  return [...pairs(rawHeaders)]
    .flatMap(([name, value]) => (name === "transfer-encoding" ? value.toLowerCase().split(",") : []))
    .map((coding) => coding.trim())
    .filter((coding) => coding !== "" && coding !== "chunked" && coding !== "identity");
}

/** The headers of an answer, or of an informational one. */
export function streamHeaders(status: number, rawHeaders: readonly string[]): OutgoingHttpHeaders {
  return { ":status": status, ...fieldsOf(rawHeaders) };
}

/** The fields as HTTP/2 takes them: also those of trailers. */
export function fieldsOf(rawHeaders: readonly string[]): Record<string, string | string[]> {
  const dropped = new Set(OF_A_CONNECTION);
  for (const [name, value] of pairs(rawHeaders)) {
    if (name === "connection") for (const named of value.split(",")) dropped.add(named.trim().toLowerCase());
  }
  const fields: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of pairs(rawHeaders)) {
    if (dropped.has(name) || name.startsWith(":")) continue;
    const before = fields[name];
    if (before === undefined) fields[name] = value;
    else if (LISTED.has(name)) fields[name] = `${String(before)}, ${value}`;
    else if (!SINGLE.has(name)) fields[name] = [before, value].flat();
  }
  return fields;
}

function* pairs(rawHeaders: readonly string[]): Generator<readonly [string, string]> {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    yield [(rawHeaders[at] ?? "").toLowerCase(), rawHeaders[at + 1] ?? ""];
  }
}

/** Reads the one host of an HTTP/1 request from bytes that come in pieces; an ambiguous request has none. Pure. */

import { hostOfHeader } from "../../../shared/policy/names.ts";
import type { Glimpse } from "./client-hello.ts";

const NONE: Glimpse = { is: "none" };
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([!-~]+) HTTP\/1\.[01]$/;
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\0\r\n]*)$/;
/** The same limit as in `REQUEST_LINE`. */
const LONGEST_METHOD = 32;
/** Beyond this only the end of the head is searched for, so that a client that sends single bytes costs little. */
const LONGEST_LOOK = 2_048;

/** `bytes` from the first one of the connection on. */
export function glimpseHost(bytes: Buffer): Glimpse {
  const end = bytes.indexOf("\r\n\r\n");
  if (end >= 0) return host(bytes.toString("latin1", 0, end));
  const more: Glimpse = { is: "more", bytes: bytes.length + 1 };
  if (bytes.length > LONGEST_LOOK) return more;
  const text = bytes.toString("latin1");
  // Does not wait for more bytes when the first are not a request.
  const word = /^[!#$%&'*+.^_`|~0-9A-Za-z-]*/.exec(text)?.[0] ?? "";
  if (word.length > LONGEST_METHOD || (word.length < text.length && (word === "" || text[word.length] !== " ")))
    return NONE;
  const line = text.indexOf("\r\n");
  if (line >= 0 && !REQUEST_LINE.test(text.slice(0, line))) return NONE;
  return more;
}

function host(head: string): Glimpse {
  const [first = "", ...lines] = head.split("\r\n");
  const [, method, target = ""] = REQUEST_LINE.exec(first) ?? [];
  // CONNECT asks for a tunnel to anywhere: it is not a request for a host.
  if (method === undefined || method === "CONNECT") return NONE;
  const hosts: string[] = [];
  for (const line of lines) {
    // No match: folded lines, bare CR or LF, or spaces before the colon, which servers read differently.
    const [, name, value = ""] = HEADER.exec(line) ?? [];
    if (name === undefined) return NONE;
    if (name.toLowerCase() === "host") hosts.push(value);
  }
  const [only, ...more] = hosts;
  const name = only === undefined || more.length > 0 ? undefined : hostOfHeader(only);
  if (name === undefined || !agrees(target, name)) return NONE;
  return { is: "name", name };
}

/** An absolute target outranks Host (RFC 9112 §3.2.2), so both must say the same. */
function agrees(target: string, name: string): boolean {
  if (target.startsWith("/") || target === "*") return true;
  const authority = /^http:\/\/([^/?#@]+)([/?].*)?$/i.exec(target)?.[1];
  return authority !== undefined && hostOfHeader(authority) === name;
}

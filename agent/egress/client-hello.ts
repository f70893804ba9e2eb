/** The server name in a TLS ClientHello (RFC 8446 §4.1.2, RFC 6066 §3), from bytes that come in pieces. Pure. */

import { hostName } from "../../shared/policy/names.ts";

/** `more`: undecided until at least `bytes` bytes are there. `none`: no name, or nothing that may be believed. */
export type Glimpse =
  | { readonly is: "more"; readonly bytes: number }
  | { readonly is: "name"; readonly name: string }
  | { readonly is: "none" };

const NONE: Glimpse = { is: "none" };
const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const HOST_NAME = 0;
const RECORD_HEADER = 5;
const MESSAGE_HEADER = 4;
const MAX_RECORD = 16_384;
/** A client that needs more for its hello wants to cost time. */
const MAX_RECORDS = 1_024;

/** `bytes` from the first one of the connection on. With ECH the outer name is the name: it is the one that is dialled. */
export function glimpseServerName(bytes: Buffer): Glimpse {
  const parts: Buffer[] = [];
  let have = 0;
  let at = 0;
  while (parts.length < MAX_RECORDS) {
    const length = recordLength(bytes, at);
    if (typeof length !== "number") return length;
    const start = at + RECORD_HEADER;
    const part = bytes.subarray(start, Math.min(start + length, bytes.length));
    parts.push(part);
    have += part.length;
    if (have > 0 && parts[0]?.[0] !== CLIENT_HELLO) return NONE;
    const seen = messageIn(parts, have);
    if (typeof seen !== "number") return seen;
    const lacking = length - part.length;
    if (lacking > 0) return { is: "more", bytes: bytes.length + Math.min(lacking, seen) };
    at = start + length;
  }
  return NONE;
}

/** Of the handshake record there, or what is seen instead. */
function recordLength(bytes: Buffer, at: number): number | Glimpse {
  // What is no TLS record need not be waited for.
  if (bytes.length > at && bytes[at] !== HANDSHAKE) return NONE;
  if (bytes.length > at + 1 && bytes[at + 1] !== 3) return NONE;
  if (bytes.length < at + RECORD_HEADER) return { is: "more", bytes: at + RECORD_HEADER };
  const length = bytes.readUInt16BE(at + 3);
  return length === 0 || length > MAX_RECORD ? NONE : length;
}

/** The name when the message is whole, else how many bytes of it are lacking at least. */
function messageIn(parts: readonly Buffer[], have: number): number | Glimpse {
  if (have < MESSAGE_HEADER) return 1;
  const message = Buffer.concat(parts);
  const end = MESSAGE_HEADER + message.readUIntBE(1, 3);
  return have >= end ? serverName(message.subarray(MESSAGE_HEADER, end)) : end - have;
}

function serverName(hello: Buffer): Glimpse {
  try {
    const body = reader(hello);
    body.skip(2 + 32);
    body.skip(body.number(1));
    body.skip(body.number(2));
    body.skip(body.number(1));
    if (body.left() === 0) return NONE;
    const extensions = reader(body.take(body.number(2)));
    let name: string | undefined;
    while (extensions.left() > 0) {
      const type = extensions.number(2);
      const content = extensions.take(extensions.number(2));
      if (type !== SERVER_NAME) continue;
      // Twice is forbidden, and two servers would not choose the same one.
      if (name !== undefined) return NONE;
      name = onlyName(content);
      if (name === undefined) return NONE;
    }
    return name === undefined ? NONE : { is: "name", name };
  } catch {
    return NONE;
  }
}

function onlyName(content: Buffer): string | undefined {
  const list = reader(content);
  if (list.number(2) !== list.left() || list.number(1) !== HOST_NAME) return undefined;
  const name = list.take(list.number(2));
  return list.left() === 0 ? hostName(name.toString("latin1")) : undefined;
}

/** Reads forward; throws a RangeError when there is not that much. */
function reader(bytes: Buffer) {
  let at = 0;
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new RangeError("cut short");
    at += length;
    return bytes.subarray(at - length, at);
  };
  return {
    take,
    skip: (length: number): void => void take(length),
    number: (length: 1 | 2): number => take(length).readUIntBE(0, length),
    left: () => bytes.length - at,
  };
}

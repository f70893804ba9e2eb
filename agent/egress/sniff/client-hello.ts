/** Reads the server name of a TLS ClientHello (RFC 8446 §4.1.2, RFC 6066 §3) from bytes that come in pieces. Pure. */

import { nameOnWire } from "../../../shared/policy/names.ts";

/** `more`: undecided until at least `bytes` bytes are there. `none`: no name, or none that can be trusted. */
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
/** A client that needs more records only wants to cost time. */
const MAX_RECORDS = 1_024;

/** `bytes` from the first one of the connection on. With ECH the outer name is the name: it is the one that is dialled. */
export function glimpseServerName(bytes: Buffer): Glimpse {
  let have = 0;
  let at = 0;
  let end: number | undefined;
  for (let records = 1; records <= MAX_RECORDS; records += 1) {
    const length = recordLength(bytes, at);
    if (typeof length !== "number") return length;
    const start = at + RECORD_HEADER;
    if (at === 0 && bytes.length > start && bytes[start] !== CLIENT_HELLO) return NONE;
    const lacking = Math.max(start + length - bytes.length, 0);
    have += length - lacking;
    at = start + length;
    // Copies nothing before the message is complete: a client may send one byte per record, and each record by itself.
    if (end === undefined && have >= MESSAGE_HEADER)
      end = MESSAGE_HEADER + message(bytes, MESSAGE_HEADER).readUIntBE(1, 3);
    if (end !== undefined && have >= end) return serverName(message(bytes, end).subarray(MESSAGE_HEADER));
    if (lacking > 0) return { is: "more", bytes: bytes.length + Math.min(lacking, end === undefined ? 1 : end - have) };
  }
  return NONE;
}

/** The first `length` bytes of the records' content; all are there. */
function message(bytes: Buffer, length: number): Buffer {
  const whole = Buffer.alloc(length);
  let at = 0;
  let have = 0;
  while (have < length) {
    const start = at + RECORD_HEADER;
    const end = start + bytes.readUInt16BE(at + 3);
    have += bytes.copy(whole, have, start, end);
    at = end;
  }
  return whole;
}

/** The length of the handshake record at that offset, or the verdict if there is none. */
function recordLength(bytes: Buffer, at: number): number | Glimpse {
  // Does not wait for more bytes when the first are not a TLS record.
  if (bytes.length > at && bytes[at] !== HANDSHAKE) return NONE;
  if (bytes.length > at + 1 && bytes[at + 1] !== 3) return NONE;
  if (bytes.length < at + RECORD_HEADER) return { is: "more", bytes: at + RECORD_HEADER };
  const length = bytes.readUInt16BE(at + 3);
  return length === 0 || length > MAX_RECORD ? NONE : length;
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
      // RFC 6066 forbids two names, and two servers would choose differently.
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
  return list.left() === 0 ? nameOnWire(name.toString("latin1")) : undefined;
}

/** Reads forward; throws a RangeError at the end of the bytes. */
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

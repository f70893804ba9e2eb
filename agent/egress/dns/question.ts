/** Reads the one question of a DNS message, and makes answers (RFC 1035 §4.1). Pure. */

import { encode, type OptAnswer } from "dns-packet";

const HEADER_BYTES = 12;
const MAX_NAME_BYTES = 255;
const OPT = 41;
const PLAIN_UDP_BYTES = 512;
const MOST_UDP_BYTES = 4_096;
const ANSWER_TO_UDP_BYTES = 1_232;

export const TYPE = {
  A: 1,
  CNAME: 5,
  MX: 15,
  AAAA: 28,
  SRV: 33,
  SVCB: 64,
  HTTPS: 65,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
} as const;
export const CODE = { ok: 0, malformed: 1, failed: 2, noName: 3, notImplemented: 4, refused: 5 } as const;
const INTERNET = 1;

const OTHER_TYPES = { NS: 2, SOA: 6, PTR: 12, TXT: 16, NAPTR: 35, CAA: 257 };
const TYPE_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries({ ...TYPE, ...OTHER_TYPES }).map(([name, type]) => [type, name]),
);
const CODE_NAMES: ReadonlyMap<number, string> = new Map([
  [CODE.malformed, "FORMERR"],
  [CODE.failed, "SERVFAIL"],
  [CODE.noName, "NXDOMAIN"],
  [CODE.notImplemented, "NOTIMP"],
  [CODE.refused, "REFUSED"],
]);

/** `A`, `TXT`, or `TYPE4711` (RFC 3597). */
export function typeName(type: number): string {
  return TYPE_NAMES.get(type) ?? `TYPE${type}`;
}

/** `NXDOMAIN`, `SERVFAIL`, or `code 9`. */
export function codeName(code: number): string {
  return CODE_NAMES.get(code) ?? `code ${code}`;
}

/** The response code of an answer. */
export function codeOfReply(reply: Buffer): number {
  return reply.length < HEADER_BYTES ? CODE.failed : reply.readUInt16BE(2) & 0xf;
}

export interface Question {
  /** The name as asked; absent when its bytes are not valid in a name. */
  readonly name?: string;
  readonly type: number;
  readonly internet: boolean;
  /** Offset behind the question in the message. */
  readonly end: number;
  /** Bytes that the client accepts over UDP. */
  readonly udpBytes: number;
}

/** Undefined for names that are cut short, compressed, or longer than names may be. `isQuestion` checks the rest. */
export function readQuestion(message: Buffer): Question | undefined {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (;;) {
    const length = message[at];
    if (length === undefined || length > 63) return undefined;
    at += 1;
    if (length === 0) break;
    labels.push(message.toString("latin1", at, at + length));
    at += length;
  }
  if (at - HEADER_BYTES > MAX_NAME_BYTES || at + 4 > message.length) return undefined;
  return {
    ...(labels.every((label) => /^[!-~]+$/.test(label) && !label.includes(".")) ? { name: labels.join(".") } : {}),
    type: message.readUInt16BE(at),
    internet: message.readUInt16BE(at + 2) === INTERNET,
    end: at + 4,
    udpBytes: udpBytes(message, at + 4),
  };
}

function udpBytes(message: Buffer, end: number): number {
  const plain = message.readUInt16BE(6) === 0 && message.readUInt16BE(8) === 0 && message.readUInt16BE(10) > 0;
  if (!plain || end + 11 > message.length || message[end] !== 0 || message.readUInt16BE(end + 1) !== OPT)
    return PLAIN_UDP_BYTES;
  return Math.min(Math.max(message.readUInt16BE(end + 3), PLAIN_UDP_BYTES), MOST_UDP_BYTES);
}

/** A response without records. */
export function respond(message: Buffer, { end }: Question, code: number): Buffer {
  const reply = Buffer.from(message.subarray(0, end));
  // Response, recursion as it was asked for and available; of the sections only the question.
  reply.writeUInt16BE(0x8080 | (message.readUInt16BE(2) & 0x0100) | code, 2);
  reply.fill(0, 6, HEADER_BYTES);
  return reply;
}

/** The addresses of the name in the question. */
export function respondAddresses(
  message: Buffer,
  question: Question,
  { addresses, ttl }: { readonly addresses: readonly string[]; readonly ttl: number },
): Buffer {
  const reply = respond(message, question, CODE.ok);
  reply.writeUInt16BE(addresses.length, 6);
  const records = addresses.map((address) => {
    const record = Buffer.from([0xc0, HEADER_BYTES, 0, TYPE.A, 0, INTERNET, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
    record.writeUInt32BE(ttl, 6);
    record.set(address.split(".").map(Number), 12);
    return record;
  });
  return Buffer.concat([reply, ...records]);
}

/** Answers the question with one CNAME record, whose target is `alias`. */
export function respondAlias(
  message: Buffer,
  question: Question,
  { alias, ttl }: { readonly alias: string; readonly ttl: number },
): Buffer {
  const reply = respond(message, question, CODE.ok);
  reply.writeUInt16BE(1, 6);
  const labels = alias.split(".").map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, "latin1"));
  const target = Buffer.concat([...labels, Buffer.from([0])]);
  const record = Buffer.from([0xc0, HEADER_BYTES, 0, TYPE.CNAME, 0, INTERNET, 0, 0, 0, 0, 0, target.length]);
  record.writeUInt32BE(ttl, 6);
  record.writeUInt16BE(target.length, 10);
  return Buffer.concat([reply, record, target]);
}

/** An answer that does not fit is replaced by "ask again over TCP". */
export function fit(reply: Buffer, message: Buffer, question: Question): Buffer {
  if (reply.length <= question.udpBytes) return reply;
  const short = respond(message, question, CODE.ok);
  short.writeUInt16BE(short.readUInt16BE(2) | 0x0200, 2);
  return short;
}

/**
 * Writes a question of our own, in which only the name comes from the sandbox.
 * @param extended it says how long the answer may be (EDNS, RFC 6891)
 */
export function ask(name: string, type: "A" | "CNAME", extended = true): Buffer {
  const option: OptAnswer = {
    type: "OPT",
    name: ".",
    udpPayloadSize: ANSWER_TO_UDP_BYTES,
    extendedRcode: 0,
    ednsVersion: 0,
    flags: 0,
    flag_do: false,
    options: [],
  };
  return encode({
    type: "query",
    id: 0,
    flags: 0x0100,
    questions: [{ name, type }],
    additionals: extended ? [option] : [],
  });
}

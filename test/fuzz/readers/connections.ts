/** Fuzzes the readers on a connection: SOCKS replies, requests to a SOCKS proxy, and Connect envelopes that pass through. */

import { isIPv4, type Socket } from "node:net";
import { duplexPair } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { tunnel } from "../../../agent/egress/connect/socks.ts";
import { hostName } from "../../../shared/policy/names.ts";
import { EnvelopeTracker } from "../../../shared/proxy/connect-envelope.ts";
import type { Random } from "../random.ts";
import { must, type Reader } from "../reader.ts";

/** After this many turns of the event loop everything sent is read, and what follows from it has happened. */
const TURNS = 8;
const PASSWORD = "hunter2";
const DESTINATION = { host: "example.com", port: 443 };

interface Tunnelled {
  /** The bytes that came out of the tunnel; undefined when there is no tunnel. */
  readonly received: Buffer | undefined;
  /** The bytes that the proxy received. */
  readonly asked: Buffer;
  readonly error: string;
}

interface Proxied {
  readonly host: string;
  readonly credentials: { readonly username?: string; readonly password?: string };
  /** The pieces of the proxy's reply; the proxy sends them without reading the request. */
  readonly pieces: readonly Buffer[];
}

/** Drives our side of a SOCKS connection until nothing more happens. */
async function throughProxy({ host, credentials, pieces }: Proxied): Promise<Tunnelled> {
  const [ours, proxy] = duplexPair();
  const asked: Buffer[] = [];
  const received: Buffer[] = [];
  const outcome = { open: false, error: "" };
  const giveUp = new AbortController();
  proxy.on("data", (chunk: Buffer) => asked.push(chunk)).on("error", () => undefined);
  ours.on("error", () => undefined);
  const opening = tunnel(
    ours as Socket,
    { host: "198.51.100.1", port: 1080, ...credentials },
    { host, port: DESTINATION.port, signal: giveUp.signal },
  ).then(
    (socket) => {
      outcome.open = true;
      socket.on("data", (chunk: Buffer) => received.push(chunk));
    },
    (error: unknown) => void (outcome.error = String(error instanceof Error ? (error.stack ?? error) : error)),
  );
  for (const piece of pieces) {
    if (piece.length > 0) proxy.write(piece);
    await turn();
  }
  for (let count = 0; count < TURNS; count += 1) await turn();
  giveUp.abort(new Error("nothing more comes"));
  await opening;
  ours.destroy();
  proxy.destroy();
  const data = Buffer.concat(received);
  return { received: outcome.open ? data : undefined, asked: Buffer.concat(asked), error: outcome.error };
}

/**
 * Returns where the tunnel's own bytes begin in a proxy's reply (RFC 1928, 1929); undefined when the proxy granted nothing.
 */
function grantedAt(reply: Buffer): number | undefined {
  if (reply.length < 2 || reply[0] !== 5) return undefined;
  const method = reply[1];
  if (method !== 0 && method !== 2) return undefined;
  const at = method === 0 ? 2 : 4;
  if (method === 2 && reply[3] !== 0) return undefined;
  if (reply[at] !== 5 || reply[at + 1] !== 0) return undefined;
  const named = reply[at + 4];
  const lengths = new Map([
    [1, 4],
    [4, 16],
    [3, named === undefined ? undefined : 1 + named],
  ]);
  const length = lengths.get(reply[at + 3] ?? 0);
  if (length === undefined || reply.length < at + 4 + length + 2) return undefined;
  return at + 4 + length + 2;
}

/** Cuts the input at random places, and at those places of `always` that lie within it. */
function pieces(input: Buffer, random: Random, always: readonly number[] = []): Buffer[] {
  const some = Array.from({ length: random.below(5) }, () => random.below(input.length + 1));
  const cuts = [...some, ...always.filter((at) => at < input.length)].toSorted((a, b) => a - b);
  return [...cuts, input.length].map((to, index) => input.subarray(cuts[index - 1] ?? 0, to));
}

const bytes = (...values: number[]) => Buffer.from(values);
const GRANTED = bytes(5, 0, 0, 1, 203, 0, 113, 7, 1, 187);
const NAMED = Buffer.concat([bytes(5, 0, 0, 3, 6), Buffer.from("a.test"), bytes(1, 187)]);
const BY_IPV6 = Buffer.concat([bytes(5, 0, 0, 4), Buffer.alloc(16, 7), bytes(1, 187)]);
const CREDENTIALS = { username: "me", password: PASSWORD };

/** Reads strictly what a client asked of a proxy; throws when the bytes are anything else. */
function readAsked(asked: Buffer): { username?: string; password?: string; host?: string; port?: number } {
  let at = 0;
  const take = (length: number) => {
    must(at + length <= asked.length, "what is asked of the proxy is cut short");
    at += length;
    return asked.subarray(at - length, at);
  };
  const text = () => take(take(1)[0] ?? 0).toString("utf8");
  must(take(1)[0] === 5, "the greeting is not SOCKS5");
  const methods = take(take(1)[0] ?? 0);
  if (at === asked.length) return {};
  const login: { username?: string; password?: string } = {};
  if (methods.includes(2) && asked[at] === 1) {
    take(1);
    login.username = text();
    login.password = text();
    if (at === asked.length) return login;
  }
  must(take(3).equals(bytes(5, 1, 0)), "the request is no CONNECT");
  const type = take(1)[0];
  must(type === 1 || type === 3, `the request's address is of type ${type}`);
  const host = type === 1 ? [...take(4)].join(".") : text();
  const port = take(2).readUInt16BE();
  must(at === asked.length, "more is asked than a CONNECT");
  return { ...login, host, port };
}

/** Returns every complete frame, and the number of bytes behind the last one. */
function framesOf(stream: Buffer): { frames: { flags: number; payload: Buffer }[]; left: number } {
  const frames: { flags: number; payload: Buffer }[] = [];
  let at = 0;
  while (stream.length - at >= 5) {
    const length = stream.readUInt32BE(at + 1);
    if (stream.length - at < 5 + length) break;
    frames.push({ flags: stream[at] ?? 0, payload: stream.subarray(at + 5, at + 5 + length) });
    at += 5 + length;
  }
  return { frames, left: stream.length - at };
}

function frame(flags: number, message: string): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(Buffer.byteLength(message), 1);
  return Buffer.concat([head, Buffer.from(message)]);
}

const STREAMS = () => [
  Buffer.concat([frame(0, '{"event":{"start":{"pid":7}}}'), frame(2, "{}")]),
  Buffer.concat([frame(0, '{"event":{"data":{"stdout":"YQ=="}}}'), frame(2, '{"error":{"code":"internal"}}')]),
  Buffer.concat([frame(0, ""), frame(1, "[]"), frame(0, "null")]),
];
const STREAM_WORDS = ["\0\0\0\0\x02{}", "\x02\0\0\0\x02{}", "\0\xff\xff\xff\xff", "\0\0\0\0\0", "{", "}", '"'];

export const connections: readonly Reader[] = [
  {
    name: "socks-reply",
    promise:
      "a tunnel only after a whole grant; its first byte is the one after that, however the reply is cut; no error holds the password",
    seeds: () =>
      [GRANTED, NAMED, BY_IPV6].flatMap((reply) => [
        Buffer.concat([bytes(5, 0), reply, Buffer.from("hello")]),
        Buffer.concat([bytes(5, 2, 1, 0), reply, Buffer.from("hello")]),
        Buffer.concat([bytes(5, 2, 1, 0), reply]),
      ]),
    words: ["\x05\0", "\x05\x02", "\x01\0", "\x01\x01", "\x05\0\0\x01", "\x05\0\0\x03\xff", "\x05\x05\0\x01", "\xff"],
    longest: 600,
    share: 5_000,
    async check(input, random) {
      // Half of the proxies wait for the client's message before each answer; the others do not.
      const waits = random.below(2) === 0;
      const { received, error } = await throughProxy({
        host: DESTINATION.host,
        credentials: CREDENTIALS,
        pieces: pieces(input, random, waits ? [2, 4] : []),
      });
      must(!error.includes(PASSWORD), "the password is in an error");
      const granted = grantedAt(input);
      must(received === undefined || granted !== undefined, "a tunnel that was not granted");
      if (waits) must(received !== undefined || granted === undefined, `granted at ${granted}, but ${error}`);
      if (received !== undefined)
        must(received.equals(input.subarray(granted)), `the tunnel brought ${received.toString("hex")}`);
    },
  },
  {
    name: "socks-request",
    promise: "what a proxy is asked is exactly the destination and the credentials; anything else is refused unasked",
    seeds: () => ["example.com", "203.0.113.7", "a.b.c", "xn--bcher-kva.example", `${"a".repeat(63)}.test`],
    words: ["\0", ".", "..", "@", ":", "[::1]", "%", "\u00e4", "127.0.0.1", "a".repeat(250)],
    longest: 400,
    share: 5_000,
    async check(input, random) {
      const host = input.toString("latin1");
      const username = random.pick(["me", host, "\u00fc".repeat(random.below(200))]);
      const reply = [bytes(5, 2), bytes(1, 0), GRANTED];
      const { asked, received } = await throughProxy({
        host,
        credentials: { username, password: host },
        pieces: reply,
      });
      const long = Math.max(Buffer.byteLength(username), Buffer.byteLength(host)) > 255;
      const right = hostName(host) === host || isIPv4(host);
      if (asked.length === 0) return must(received === undefined && (!right || long || username === ""), "not asked");
      must(right && !long, "a proxy was asked for what is no destination");
      const read = readAsked(asked);
      must(read.host === host && read.port === DESTINATION.port, `asked for ${read.host}:${read.port}`);
      must(read.username === username && read.password === host, "other credentials were sent");
    },
  },
  {
    name: "connect-envelopes",
    promise:
      "never throws; where a frame may be appended is the same however the stream is cut, and never inside another",
    seeds: STREAMS,
    words: STREAM_WORDS,
    longest: 2_000,
    share: 60_000,
    check(input, random) {
      const tracker = new EnvelopeTracker();
      for (const piece of pieces(input, random)) tracker.push(piece);
      const { frames, left } = framesOf(input);
      const ended = frames.some(({ flags }) => (flags & 2) !== 0);
      must(tracker.mayAppend === (left === 0 && !ended), `may append: ${tracker.mayAppend}`);
    },
  },
];

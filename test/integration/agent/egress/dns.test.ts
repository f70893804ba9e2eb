/** The node's resolver, over real sockets, with resolvers of the test's own behind it. */

import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { openNames } from "../../../../agent/egress/dns/names.ts";
import type { Asker } from "../../../../agent/egress/dns/policy.ts";
import { type DnsOptions, startDns } from "../../../../agent/egress/dns/resolver.ts";
import { roomOfEgress } from "../../../../agent/egress/limits/shares.ts";
import { CLOSED, type EgressPolicy, OPEN } from "../../../../shared/policy/egress-policy.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { type NameServer, nameServer, onFreePort } from "../../../support/peers/name-server.ts";

const ROOM = roomOfEgress(20_000, 1_000);
const log = createLog({ component: "test", level: "silent" });
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** Answers every A question with one address; the question is copied from the query. */
function answer(query: Buffer, address: readonly number[]): Buffer {
  const header = Buffer.from(query.subarray(0, 12));
  header.writeUInt16BE(0x8180, 2);
  header.writeUInt16BE(1, 6);
  header.fill(0, 8, 12);
  const question = query.subarray(12);
  const record = Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address]);
  return Buffer.concat([header, question, record]);
}

/** An answer without records. */
function withCode(query: Buffer, code: number): Buffer {
  const reply = Buffer.from(query);
  reply.writeUInt16BE(0x8180 | code, 2);
  return reply;
}

async function upstream(reply: (query: Buffer) => Buffer | undefined): Promise<NameServer> {
  const server = await nameServer(reply);
  stops.push(() => server.close());
  return server;
}

const refusals: { name: string; rule: string }[] = [];
const failures: string[] = [];
const asker = (policy: EgressPolicy, mayAsk = () => true): Asker => ({
  policy,
  mayAsk,
  tooMany: () => void failures.push("too many"),
  refused: ({ name }, rule) => void refusals.push({ name, rule }),
  failed: ({ name, type }, reason) => void failures.push(`${name} ${type} ${reason}`),
});

async function resolver(
  list: { host: string; port: number }[],
  who: Asker | undefined = asker(OPEN),
  { room = ROOM, tcpLimits }: Partial<Pick<DnsOptions, "room" | "tcpLimits">> = {},
) {
  refusals.length = 0;
  failures.length = 0;
  const upstreams = async () => list;
  const names = openNames(upstreams);
  const dns = await onFreePort(() =>
    startDns({ listen: { address: "127.0.0.1", port: 0 }, upstreams, names, askerAt: () => who, room, tcpLimits, log }),
  );
  stops.push(() => dns.stop());
  const client = new Resolver({ timeout: 3_000, tries: 4 });
  // This client asks little from its address, while others ask a lot.
  client.setLocalAddress("127.0.0.1");
  client.setServers([`127.0.0.1:${dns.port}`]);
  return { client, port: dns.port };
}

test("a name is resolved by the upstream resolver, and its answer comes back", async () => {
  const { client } = await resolver([await upstream((query) => answer(query, [203, 0, 113, 7]))]);
  expect(await client.resolve4("example.test")).toEqual(["203.0.113.7"]);
  expect(failures).toEqual([]);
});

test("a resolver that does not answer is skipped, and the next one answers", async () => {
  const there = await upstream((query) => answer(query, [203, 0, 113, 8]));
  const { client } = await resolver([{ host: "127.0.0.1", port: 9 }, there]);
  expect(await client.resolve4("example.test")).toEqual(["203.0.113.8"]);
});

test("a resolver to which no packet can be sent is skipped at once, and the next one answers", async () => {
  const there = await upstream((query) => answer(query, [203, 0, 113, 8]));
  // The kernel refuses both: an address of a link without the link's name, and a broadcast.
  const { client } = await resolver([{ host: "fe80::1", port: 53 }, { host: "255.255.255.255", port: 53 }, there]);
  const begun = Date.now();
  expect(await client.resolve4("example.test")).toEqual(["203.0.113.8"]);
  expect(Date.now() - begun).toBeLessThan(2_000);
});

test.each([
  ["SERVFAIL", 2],
  ["NOTIMP", 4],
  ["REFUSED", 5],
])("after %s of a resolver the next one is asked, whose NXDOMAIN counts", async (_name, code) => {
  const failing = await upstream((query) => withCode(query, code));
  const there = await upstream((query) => answer(query, [203, 0, 113, 8]));
  const { client } = await resolver([failing, there]);
  expect(await client.resolve4("example.test")).toEqual(["203.0.113.8"]);
  const without = await upstream((query) => withCode(query, 3));
  const second = await resolver([failing, without, there]);
  await expect(second.client.resolve4("example.test")).rejects.toMatchObject({ code: "ENOTFOUND" });
  const last = await resolver([failing, { host: "127.0.0.1", port: 9 }]);
  await expect(last.client.resolve4("example.test")).rejects.toThrow();
  expect(failures[0]).toMatch(/^example\.test 1 (SERVFAIL|NOTIMP|REFUSED)$/);
});

test("a question whose packet is lost is sent again, and its answer comes within the resolver's time", async () => {
  let asked = 0;
  const lossy = await upstream((query) => (++asked === 1 ? undefined : answer(query, [203, 0, 113, 8])));
  const { client } = await resolver([lossy]);
  expect(await client.resolve4("example.test")).toEqual(["203.0.113.8"]);
  expect(asked).toBe(2);
  expect(failures).toEqual([]);
});

test("an answer to another question is ignored", async () => {
  const liar = await upstream((query) => {
    const forged = answer(query, [198, 51, 100, 1]);
    forged.writeUInt16BE((query.readUInt16BE(0) + 1) % 0x10000, 0);
    return forged;
  });
  const honest = await upstream((query) => answer(query, [203, 0, 113, 9]));
  const { client } = await resolver([liar, honest]);
  expect(await client.resolve4("example.test")).toEqual(["203.0.113.9"]);
});

test("without an upstream resolver the question fails at once", async () => {
  const { client } = await resolver([{ host: "127.0.0.1", port: 9 }]);
  await expect(client.resolve4("example.test")).rejects.toMatchObject({ code: "ESERVFAIL" });
});

/** A question as it goes over TCP, with its length first. */
function question(id: number): Buffer {
  const message = Buffer.from("\0\x1f\0\0\x01\0\0\x01\0\0\0\0\0\0\x07example\x04test\0\0\x01\0\x01", "latin1");
  message.writeUInt16BE(message.length - 2, 0);
  message.writeUInt16BE(id, 2);
  return message;
}

test.each([
  ["answers with a failure", () => upstream((query) => withCode(query, 2)), "SERVFAIL"],
  ["refuses", () => upstream((query) => withCode(query, 5)), "REFUSED"],
  ["answers with an unusual code", () => upstream((query) => withCode(query, 9)), "code 9"],
  ["cannot be reached", () => Promise.resolve({ host: "127.0.0.1", port: 9 }), "unreachable"],
  ["does not answer in time", () => upstream(() => undefined), "timeout"],
])("a question whose resolver %s is noted with its reason, under both kinds of policy", async (_, open, reason) => {
  const behind = [await open()];
  const listed = { ...CLOSED, allowDomains: ["example.test"] };
  for (const policy of [OPEN, listed]) {
    const { client } = await resolver(behind, asker(policy));
    const patient = new Resolver({ timeout: 4_000, tries: 1 });
    patient.setServers(client.getServers());
    await expect(patient.resolve4("Example.test")).rejects.toThrow();
    // On a busy machine the client may have given up before the resolver does.
    await expect.poll(() => failures).toEqual([`example.test 1 ${reason}`]);
  }
});

test("a node without a resolver says so", async () => {
  const { client } = await resolver([]);
  await expect(client.resolve4("example.test")).rejects.toThrow();
  expect(new Set(failures)).toEqual(new Set(["example.test 1 no resolver"]));
});

test("several questions on one TCP connection are answered in order", async () => {
  const { port } = await resolver([await upstream((query) => answer(query, [203, 0, 113, query.readUInt16BE(0)]))]);
  const socket = connect(port, "127.0.0.1");
  stops.push(() => socket.destroy());
  // The pieces do not match the messages.
  const bytes = Buffer.concat([question(1), question(2)]);
  socket.write(bytes.subarray(0, 7));
  socket.write(bytes.subarray(7));
  let received = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
  });
  const ids = () => {
    const found: number[] = [];
    for (let at = 0; at + 4 <= received.length; at += 2 + received.readUInt16BE(at))
      found.push(received.readUInt16BE(at + 2));
    return found;
  };
  await expect.poll(ids).toEqual([1, 2]);
});

test("a packet that is no question gets no answer", async () => {
  const { port } = await resolver([await upstream((query) => answer(query, [1, 1, 1, 1]))]);
  const socket = connect(port, "127.0.0.1");
  stops.push(() => socket.destroy());
  socket.write(Buffer.from([0, 3, 1, 2, 3]));
  await once(socket, "close");
  expect(socket.bytesRead).toBe(0);
});

test("sandboxes that leave their questions without an answer leave room for one that asks a few", async () => {
  const hangs = "hangs";
  const behind = await upstream((query) => (query.includes(hangs) ? undefined : answer(query, [203, 0, 113, 7])));
  const small = { total: 96, most: 32, few: 4, reserved: 56 };
  const { client, port } = await resolver([behind], asker(OPEN), { room: { ...ROOM, questions: small } });
  const asked = Buffer.concat([
    Buffer.from([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, hangs.length]),
    Buffer.from(hangs),
    Buffer.from([0, 0, 1, 0, 1]),
  ]);
  for (let number = 2; number < 12; number++) {
    const socket = createSocket("udp4");
    stops.push(() => socket.close());
    socket.bind(0, `127.0.0.${number}`);
    await once(socket, "listening");
    for (let count = 0; count < 20; count++) socket.send(asked, port, "127.0.0.1");
  }
  expect(await client.resolve4("example.test")).toEqual(["203.0.113.7"]);
});

/** Longer than any of these tests. */
const LONG_MS = 600_000;
const SHORT_MS = 300;
const LIMITS = { questionMs: LONG_MS, answerMs: LONG_MS, wholeMs: LONG_MS };
const ENDS = { timeout: 30_000 };

/** Opens a connection to the resolver, and repeats `act` on it until it is closed. */
function keepBusy(port: number, act: (socket: Socket) => void) {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  const acting = setInterval(() => act(socket), 10);
  socket.once("close", () => clearInterval(acting));
  stops.push(() => {
    clearInterval(acting);
    socket.destroy();
  });
  return socket;
}

test.each([
  ["sends nothing", () => undefined],
  ["sends a question byte by byte", (socket: Socket) => void socket.write("\x0f")],
])("a TCP connection that %s is closed, and its sandbox may open another", async (_, act) => {
  const behind = await upstream((query) => answer(query, [203, 0, 113, 7]));
  const tcpLimits = { ...LIMITS, questionMs: SHORT_MS };
  const one = { ...ROOM.dnsConnections, most: 1 };
  const { port } = await resolver([behind], asker(OPEN), { room: { ...ROOM, dnsConnections: one }, tcpLimits });
  const socket = keepBusy(port, act);
  await expect.poll(() => socket.closed, ENDS).toBe(true);
  const anotherIsAnswered = async () => {
    const another = keepBusy(port, () => undefined);
    another.write(question(1));
    await Promise.race([once(another, "data"), once(another, "close")]);
    const answered = another.bytesRead > 0;
    another.destroy();
    return answered;
  };
  await expect.poll(anotherIsAnswered, ENDS).toBe(true);
});

test("a TCP connection with a question longer than questions are is closed at once", async () => {
  const { port } = await resolver([], asker(OPEN), { tcpLimits: LIMITS });
  const socket = keepBusy(port, () => undefined);
  socket.write(Buffer.from([0xff, 0xff, 0]));
  await expect.poll(() => socket.closed, ENDS).toBe(true);
});

test("a TCP connection that asks and does not read its answers is closed, and its answers do not queue", async () => {
  let asked = 0;
  const long = Buffer.alloc(60_000);
  const behind = await upstream((query) => {
    asked += 1;
    return Buffer.concat([answer(query, [203, 0, 113, 7]), long]);
  });
  const { port } = await resolver([behind], asker(OPEN), { tcpLimits: { ...LIMITS, answerMs: SHORT_MS } });
  const questions = Buffer.concat(Array.from({ length: 200 }, (_, id) => question(id)));
  const socket = keepBusy(port, (to) => {
    if (to.writableLength < 1_000_000) to.write(questions);
  });
  socket.pause();
  await expect.poll(() => socket.closed, ENDS).toBe(true);
  // The resolver takes what the kernel's buffers at both ends hold, and not all questions that were sent.
  expect(asked).toBeLessThan(1_000);
});

test("a TCP connection that keeps asking is closed after a time limit", async () => {
  const behind = await upstream((query) => answer(query, [203, 0, 113, 7]));
  const { port } = await resolver([behind], asker(OPEN), { tcpLimits: { ...LIMITS, wholeMs: 1_000 } });
  const socket = keepBusy(port, (to) => void to.write(question(1)));
  socket.resume();
  await expect.poll(() => socket.closed, ENDS).toBe(true);
});

test("questions over TCP count among those that a sandbox may have under way", async () => {
  const behind = await upstream(() => undefined);
  const room = { ...ROOM, questions: { total: 16, most: 2, few: 2, reserved: 4 } };
  const { port } = await resolver([behind], asker(OPEN), { room, tcpLimits: LIMITS });
  const sockets = [1, 2, 3].map((id) => {
    const socket = keepBusy(port, () => undefined);
    socket.write(question(id));
    return socket;
  });
  await expect.poll(() => sockets.filter(({ closed }) => closed).length, ENDS).toBe(1);
});

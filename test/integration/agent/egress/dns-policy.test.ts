/**
 * The DNS answers that a sandbox gets under its policy, and the questions that the resolvers behind the node's resolver
 * receive.
 */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type Answer, decode, encode, type Packet, type Question } from "dns-packet";
import { afterEach, expect, test } from "vitest";
import { openNames } from "../../../../agent/egress/dns/names.ts";
import type { Asker } from "../../../../agent/egress/dns/policy.ts";
import { startDns } from "../../../../agent/egress/dns/resolver.ts";
import { roomOfEgress } from "../../../../agent/egress/limits/shares.ts";
import { CLOSED, type EgressPolicy, OPEN } from "../../../../shared/policy/egress-policy.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { nameServer, onFreePort } from "../../../support/peers/name-server.ts";

const room = roomOfEgress(20_000, 1_000);
const log = createLog({ component: "test", level: "silent" });
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const A = (name: string, data: string, ttl = 300): Answer => ({ type: "A", name, ttl, data });
const ZONE: Record<string, Answer[]> = {
  "a.test": [A("a.test", "203.0.113.1")],
  "alias.test": [{ type: "CNAME", name: "alias.test", ttl: 300, data: "a.test" }, A("A.test", "203.0.113.1", 20)],
  "mixed.test": [A("mixed.test", "10.0.0.1"), A("mixed.test", "203.0.113.2"), A("unasked.test", "203.0.113.66")],
  "inside.test": [A("inside.test", "169.254.169.254")],
  "_mongodb._tcp.a.test": [
    {
      type: "SRV",
      name: "_mongodb._tcp.a.test",
      ttl: 20,
      data: { port: 27017, priority: 0, weight: 0, target: "a.test" },
    },
  ],
  "mail.test": [{ type: "MX", name: "mail.test", ttl: 20, data: { preference: 10, exchange: "a.test" } }],
  "many.test": Array.from({ length: 16 }, (_, i) => A("many.test", `203.0.113.${i}`)),
};

interface Asked {
  readonly name: string;
  readonly type: string;
  readonly message: Buffer;
}

async function world(who: (source: string) => Asker | undefined) {
  const asked: Asked[] = [];
  const reply = (message: Buffer): Buffer => {
    const query = decode(message);
    const question = query.questions?.[0] as Question;
    asked.push({ name: question.name, type: question.type, message });
    const zone = ZONE[question.name.toLowerCase()];
    const answers = (zone ?? []).filter(({ type }) => type === "CNAME" || type === question.type);
    const text = question.type === "TXT" ? [{ type: "TXT" as const, name: question.name, ttl: 1, data: "text" }] : [];
    return encode({
      type: "response",
      id: query.id ?? 0,
      flags: 0x0180 | (zone === undefined && text.length === 0 ? 3 : 0),
      questions: [question],
      answers: [...answers, ...text],
    });
  };
  const upstream = await nameServer(reply);
  stops.push(() => upstream.close());

  const upstreams = async () => [upstream];
  const names = openNames(upstreams);
  const dns = await onFreePort(() =>
    startDns({ listen: { address: "127.0.0.1", port: 0 }, upstreams, names, askerAt: who, room, log }),
  );
  stops.push(() => dns.stop());

  const send = async (message: Buffer, limitMs = 3_000): Promise<Buffer | undefined> => {
    const socket = createSocket("udp4");
    try {
      socket.send(message, dns.port, "127.0.0.1");
      const [answer] = (await once(socket, "message", { signal: AbortSignal.timeout(limitMs) })) as [Buffer];
      return answer;
    } catch {
      return undefined;
    } finally {
      socket.close();
    }
  };
  const ask = async (name: string, type: string, more: Partial<Packet> = {}, limitMs = 3_000) => {
    const question = { name, type, class: "IN" } as Question;
    const answer = await send(encode({ type: "query", id: 7, flags: 0x0100, questions: [question], ...more }), limitMs);
    return answer === undefined ? undefined : decode(answer);
  };
  return { asked, ask, send };
}

function sandbox(policy: EgressPolicy, mayAsk = () => true) {
  const refused: string[] = [];
  const failed: string[] = [];
  const asker: Asker = {
    policy,
    mayAsk,
    tooMany: () => undefined,
    refused: ({ name }, rule) => void refused.push(`${name} ${rule}`),
    failed: ({ name, type }, reason) => void failed.push(`${name} ${type} ${reason}`),
  };
  return { refused, failed, asker };
}

const codeOf = (packet: Packet | undefined) => (packet as { rcode?: string } | undefined)?.rcode;
const dataOf = (packet: Packet | undefined) => (packet?.answers ?? []).map((answer) => "data" in answer && answer.data);
const restricted: EgressPolicy = {
  ...CLOSED,
  allowDomains: ["a.test", "alias.test", "mixed.test", "inside.test", "many.test", "*.wild.test"],
};

test("an address that is no sandbox's gets no answer", async () => {
  const { ask, asked } = await world(() => undefined);
  expect(await ask("a.test", "A", {}, 300)).toBeUndefined();
  expect(asked).toEqual([]);
});

test("under an open policy the hosts of a service and of a name's mail are found, as drivers with mongodb+srv:// need them", async () => {
  const { asker, refused } = sandbox(OPEN);
  const { ask } = await world(() => asker);
  expect(dataOf(await ask("_mongodb._tcp.a.test", "SRV"))).toMatchObject([{ port: 27017, target: "a.test" }]);
  expect(dataOf(await ask("mail.test", "MX"))).toMatchObject([{ exchange: "a.test" }]);
  expect(refused).toEqual([]);
});

test("under an open policy every name is resolved, but only to addresses, aliases and hosts of services", async () => {
  const { asker, refused, failed } = sandbox(OPEN);
  const { ask, asked } = await world(() => asker);
  expect(dataOf(await ask("a.test", "A"))).toEqual(["203.0.113.1"]);
  expect(dataOf(await ask("alias.test", "CNAME"))).toEqual(["a.test"]);
  expect(codeOf(await ask("none.test", "A"))).toBe("NXDOMAIN");
  expect(await ask("a.test", "AAAA")).toMatchObject({ rcode: "NOERROR", answers: [] });
  expect(asked.map(({ type }) => type)).toEqual(["A", "CNAME", "A", "AAAA"]);
  const before = asked.length;
  for (const type of ["UNKNOWN_64", "UNKNOWN_65", "ANY", "TXT", "NS", "NULL", "PTR"]) {
    expect(await ask("a.test", type)).toMatchObject({ rcode: "NOERROR", answers: [] });
  }
  expect(failed).toEqual(["none.test 1 NXDOMAIN"]);
  // The log leaves out types for which every browser asks.
  expect(refused).toEqual([16, 2, 10, 12].map((type) => `a.test always type ${type}`));
  expect(codeOf(await ask("a.test", "AXFR"))).toBe("REFUSED");
  expect(asked).toHaveLength(before);
});

test("under a restricted policy an unlisted name is not resolved at all", async () => {
  const { asker, refused } = sandbox(restricted);
  const { ask, asked } = await world(() => asker);
  for (const name of ["secret.evil.test", "x.a.test", "bada.test", "wild.test"]) {
    for (const type of ["A", "AAAA", "TXT", "CNAME", "SRV", "MX"])
      expect(codeOf(await ask(name, type))).toBe("REFUSED");
  }
  expect(asked).toEqual([]);
  expect(refused[0]).toBe("secret.evil.test denyOut 0.0.0.0/0");
});

test("a listed name is resolved by a question that the resolver writes itself", async () => {
  const { asker } = sandbox(restricted);
  const { ask, asked } = await world(() => asker);
  const extra = {
    type: "OPT",
    name: ".",
    udpPayloadSize: 1_400,
    options: [{ code: 65_001, data: Buffer.from("leak") }],
  };
  const answer = await ask("A.tEsT", "A", { additionals: [extra as unknown as Answer] });
  expect(dataOf(answer)).toEqual(["203.0.113.1"]);
  expect(answer?.id).toBe(7);
  expect(answer?.questions?.[0]?.name).toBe("A.tEsT");
  expect(asked).toMatchObject([{ name: "a.test", type: "A" }]);
  expect(asked[0]?.message.includes("leak")).toBe(false);
});

test("only addresses and aliases are answered; IPv6 and other types are never asked", async () => {
  const { asker, refused } = sandbox(restricted);
  const { ask, asked } = await world(() => asker);
  expect(await ask("a.test", "AAAA")).toMatchObject({ rcode: "NOERROR", answers: [] });
  for (const type of ["TXT", "MX", "SRV", "NS", "NULL", "UNKNOWN_65"]) {
    expect(await ask("a.test", type)).toMatchObject({ rcode: "NOERROR", answers: [] });
  }
  expect(asked).toEqual([]);
  expect(refused).toContain("a.test always type 16");
  expect(dataOf(await ask("alias.test", "CNAME"))).toEqual(["a.test"]);
  const followed = await ask("alias.test", "A");
  expect(followed?.answers).toMatchObject([{ name: "alias.test", data: "203.0.113.1", ttl: 20 }]);
});

test("addresses that are always denied are left out", async () => {
  const { asker, refused } = sandbox(restricted);
  const { ask } = await world(() => asker);
  expect(dataOf(await ask("mixed.test", "A"))).toEqual(["203.0.113.2"]);
  expect(await ask("inside.test", "A")).toMatchObject({ rcode: "NOERROR", answers: [] });
  expect(refused).toEqual(["mixed.test always 10.0.0.0/8", "inside.test always 169.254.0.0/16"]);
});

test("an answer is cached for its time to live", async () => {
  const { asker } = sandbox(restricted);
  const { ask, asked } = await world(() => asker);
  await Promise.all([ask("a.test", "A"), ask("a.test", "A"), ask("a.test", "A")]);
  await ask("a.test", "A");
  expect(asked).toHaveLength(1);
  expect(codeOf(await ask("none.wild.test", "A"))).toBe("NXDOMAIN");
  expect(codeOf(await ask("none.wild.test", "A"))).toBe("NXDOMAIN");
  expect(asked).toHaveLength(3);
});

test("a sandbox that sends too many questions gets no answer", async () => {
  const { asker } = sandbox(OPEN, () => false);
  const { ask, asked } = await world(() => asker);
  expect(await ask("a.test", "A", {}, 300)).toBeUndefined();
  expect(asked).toEqual([]);
});

test("a message that is no question, or has no name, is not forwarded", async () => {
  const { asker } = sandbox(OPEN);
  const { send, asked } = await world(() => asker);
  const header = Buffer.from([0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  const long = Buffer.concat([
    ...Array.from({ length: 5 }, () => Buffer.concat([Buffer.from([63]), Buffer.alloc(63, "a")])),
    Buffer.from([0, 0, 1, 0, 1]),
  ]);
  for (const question of [Buffer.from([0xc0, 0x0c, 0, 1, 0, 1]), Buffer.from("\x05abc\0\0\x01", "latin1"), long]) {
    expect(await send(Buffer.concat([header, question]), 200)).toBeUndefined();
  }
  const two = Buffer.concat([header, Buffer.from("\x01a\0\0\x01\0\x01\x01b\0\0\x01\0\x01", "latin1")]);
  two.writeUInt16BE(2, 4);
  expect(await send(two, 200)).toBeUndefined();
  expect(asked).toEqual([]);
});

test("an answer that does not fit is marked as cut, and is whole for a client that can take it", async () => {
  const name = `${"x".repeat(60)}.${"y".repeat(60)}.${"z".repeat(60)}.${"w".repeat(50)}.wild.test`;
  ZONE[name] = Array.from({ length: 16 }, (_, i) => A(name, `203.0.113.${i}`));
  const { asker } = sandbox(restricted);
  const { ask } = await world(() => asker);
  const small = await ask(name, "A");
  expect(small).toMatchObject({ flag_tc: true, answers: [] });
  const opt = { type: "OPT", name: ".", udpPayloadSize: 1_232, options: [] } as unknown as Answer;
  expect((await ask(name, "A", { additionals: [opt] }))?.answers).toHaveLength(16);
});

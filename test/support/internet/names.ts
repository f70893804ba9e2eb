/** The DNS of the test internet: zones from the plan and from tests, over UDP, TCP and TLS (there only a listener). */

import { createSocket } from "node:dgram";
import { createServer } from "node:net";
import { type Answer, type DecodedPacket, decode, encode, type Packet, streamEncode } from "dns-packet";
import { ADDRESS, type Zone } from "./plan.ts";
import type { Records } from "./records.ts";

const TTL_S = 0;

export interface Names {
  set(name: string, zone: Zone): void;
  answer(query: Buffer, server: string): Buffer | undefined;
  /** Resolves a name for servers that resolve names themselves, as a SOCKS proxy does. */
  addresses(name: string): readonly string[];
}

export function names(given: Readonly<Record<string, Zone>>, records: Records): Names {
  const zones = new Map(Object.entries(given));
  const turns = new Map<string, number>();

  const zoneOf = (name: string): Zone | undefined => {
    const labels = name.split(".");
    const parents = labels.map((_, index) => `*.${labels.slice(index + 1).join(".")}`);
    return [name, ...parents].map((one) => zones.get(one)).find((zone) => zone !== undefined);
  };
  const addressesOf = (name: string, zone: Zone): readonly string[] => {
    const list = zone.a ?? [];
    if (typeof list[0] === "string") return list as readonly string[];
    const turn = turns.get(name) ?? 0;
    turns.set(name, turn + 1);
    return (list as readonly (readonly string[])[])[turn % Math.max(1, list.length)] ?? [];
  };
  const answersTo = (name: string, type: string): readonly Answer[] => {
    const zone = zoneOf(name);
    if (zone === undefined) return [];
    if (zone.cname !== undefined) {
      return [{ type: "CNAME", name, ttl: TTL_S, data: zone.cname }, ...answersTo(zone.cname, type)];
    }
    const answer = (data: Answer) => [data];
    if (type === "A") return addressesOf(name, zone).map((data) => ({ type: "A", name, ttl: TTL_S, data }));
    if (type === "AAAA") return (zone.aaaa ?? []).map((data) => ({ type: "AAAA", name, ttl: TTL_S, data }));
    if (type === "TXT" && zone.txt !== undefined) return answer({ type: "TXT", name, ttl: TTL_S, data: zone.txt });
    if (["HTTPS", "UNKNOWN_65"].includes(type) && zone.https === true) {
      return answer({ type: "UNKNOWN_65", name, ttl: TTL_S, data: httpsRecord() } as unknown as Answer);
    }
    return [];
  };

  return {
    set: (name, zone) => zones.set(name, zone),
    addresses: (name) => answersTo(name.toLowerCase(), "A").flatMap((one) => (one.type === "A" ? [one.data] : [])),
    answer(query, server) {
      const asked = read(query);
      const question = asked?.questions?.[0];
      if (asked === undefined || question === undefined) return undefined;
      records.add({ is: "question", name: question.name, type: question.type, server });
      const name = question.name.toLowerCase();
      const missing = zoneOf(name) === undefined;
      const reply: Packet = {
        type: "response",
        id: asked.id ?? 0,
        // The flags say authoritative and recursive; code 3 is NXDOMAIN.
        flags: 0x0580 | (missing ? 3 : 0),
        questions: [question],
        answers: [...answersTo(name, question.type)],
      };
      return encode(reply);
    },
  };
}

export async function serveNames(given: Names, address: string, records: Records): Promise<void> {
  const socket = createSocket("udp4");
  socket.on("message", (query, from) => {
    const reply = given.answer(query, address);
    if (reply !== undefined) socket.send(reply, from.port, from.address);
  });
  const stream = createServer((connection) => {
    let pending = Buffer.alloc(0);
    connection.on("error", () => connection.destroy());
    connection.on("data", (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        const length = 2 + pending.readUInt16BE(0);
        const reply = given.answer(pending.subarray(2, length), address);
        pending = pending.subarray(length);
        if (reply !== undefined) connection.write(streamEncode(decode(reply)));
      }
    });
  });
  const overTls = createServer((connection) => {
    records.add({ is: "connection", service: "dns over tls", address, port: 853 });
    connection.on("error", () => connection.destroy());
    connection.end("hello");
  });
  await Promise.all([
    new Promise<void>((resolve) => {
      socket.bind(53, address, resolve);
    }),
    ...(
      [
        [stream, 53],
        [overTls, 853],
      ] as const
    ).map(
      ([server, port]) =>
        new Promise<void>((resolve) => {
          server.listen(port, address, resolve);
        }),
    ),
  ]);
}

function read(query: Buffer): DecodedPacket | undefined {
  try {
    return decode(query);
  } catch {
    return undefined;
  }
}

/** An HTTPS record (RFC 9460): priority 1, target ".", ipv4hint (4), ech (5). */
function httpsRecord(): Buffer {
  const parameter = (key: number, value: Buffer) => {
    const head = Buffer.alloc(4);
    head.writeUInt16BE(key, 0);
    head.writeUInt16BE(value.length, 2);
    return Buffer.concat([head, value]);
  };
  const hint = Buffer.from(ADDRESS.google.split(".").map(Number));
  const ech = Buffer.from("not a real configuration, but one that is passed on or not");
  return Buffer.concat([Buffer.from([0, 1, 0]), parameter(4, hint), parameter(5, ech)]);
}

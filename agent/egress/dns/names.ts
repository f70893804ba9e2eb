/**
 * Resolves names with the node's resolvers and caches the addresses for the answer's TTL, up to a minute. Sandboxes
 * that may ask only for listed names get these addresses as answers, and the egress process dials the same ones.
 */

import { decode, type Packet } from "dns-packet";
import { LRUCache } from "lru-cache";
import { defined } from "../../../shared/defined.ts";
import { hostName } from "../../../shared/policy/names.ts";
import { addressNumber } from "../../../shared/policy/ranges.ts";
import { askTcp, askUdp, type NoAnswer } from "./ask.ts";
import { ask, CODE, codeOfReply } from "./question.ts";
import type { UpstreamResolver } from "./upstream-resolvers.ts";

const LONGEST_MS = 60_000;
const MOST_NAMES = 10_000;
const MOST_ADDRESSES = 16;
const LONGEST_CHAIN = 16;

interface NameAnswer {
  /** A response code: one of `CODE` in question.ts, or another one of the resolver. */
  readonly code: number;
  /** IPv4, in the order of the answer. */
  readonly addresses: readonly string[];
  /** Seconds. */
  readonly ttl: number;
  /** Set when no resolver answered; the code is then `CODE.failed`. */
  readonly noAnswer?: NoAnswer;
}

type FoundPacket = { readonly packet: Packet } | { readonly noAnswer?: NoAnswer };

export interface Names {
  /** Never throws: an unreachable resolver is `CODE.failed`. */
  addresses(name: string): Promise<NameAnswer>;
  /** The target of the name, if the name is an alias. */
  alias(name: string): Promise<NameAnswer & { readonly alias?: string }>;
  stop(): void;
}

export function openNames(
  upstreams: () => Promise<readonly UpstreamResolver[]>,
  now: () => number = () => performance.now(),
): Names {
  const known = new LRUCache<string, { readonly until: number; readonly answer: Promise<NameAnswer> }>({
    max: MOST_NAMES,
  });
  const stopping = new AbortController();

  const asked = async (name: string, type: "A" | "CNAME"): Promise<FoundPacket> => {
    try {
      const servers = await upstreams();
      const extended = ask(name, type, true);
      const first = await askUdp(extended, servers, stopping.signal);
      // So answers a resolver that does not know EDNS, or a router before it (RFC 6891 §7): it is asked as programs ask it.
      const isUnknown = codeOfReply(first.message) === CODE.malformed;
      const question = isUnknown ? ask(name, type, false) : extended;
      const udp = isUnknown ? await askUdp(question, servers, stopping.signal) : first;
      const short = decode(udp.message);
      const reply = short.flag_tc ? await askTcp(question, servers, stopping.signal) : udp;
      if (reply.noAnswer !== undefined) return { noAnswer: reply.noAnswer };
      return { packet: reply === udp ? short : decode(reply.message) };
    } catch {
      return {};
    }
  };

  const look = async (name: string): Promise<NameAnswer> => {
    const found = await asked(name, "A");
    const answer = "packet" in found ? addressesIn(found.packet, name) : noAnswer(found);
    // Failures are not cached.
    if (answer.addresses.length === 0) known.delete(name);
    else known.set(name, { until: now() + Math.min(answer.ttl * 1_000, LONGEST_MS), answer: Promise.resolve(answer) });
    return answer;
  };

  return {
    addresses(name) {
      const found = known.get(name);
      if (found !== undefined && found.until > now()) return found.answer;
      const answer = look(name);
      // Parallel requests wait for the same answer.
      known.set(name, { until: now() + LONGEST_MS, answer });
      return answer;
    },
    async alias(name) {
      const found = await asked(name, "CNAME");
      if (!("packet" in found)) return noAnswer(found);
      const { packet } = found;
      const record = (packet.answers ?? []).find(({ type, name: of }) => type === "CNAME" && hostName(of) === name);
      const alias = record?.type === "CNAME" ? hostName(record.data) : undefined;
      return { code: codeOf(packet), addresses: [], ttl: ttlOf(record), ...defined({ alias }) };
    },
    stop: () => stopping.abort(),
  };
}

function noAnswer(why: { readonly noAnswer?: NoAnswer }): NameAnswer {
  return { code: CODE.failed, addresses: [], ttl: 0, ...why };
}

/** Reads only the records that belong to the name, and ignores all others in the message. */
function addressesIn(packet: Packet, name: string): NameAnswer {
  const records = packet.answers ?? [];
  const ttls: number[] = [];
  let owner: string | undefined = name;
  for (let step = 0; step < LONGEST_CHAIN && owner !== undefined; step += 1) {
    const of: string = owner;
    const here = records.filter((record) => "name" in record && hostName(record.name) === of);
    const addresses = here.flatMap((record) => (record.type === "A" ? [record] : []));
    if (addresses.length > 0) {
      ttls.push(...addresses.map(ttlOf));
      const list = addresses.map(({ data }) => data).filter((address) => addressNumber(address) !== undefined);
      return { code: codeOf(packet), addresses: [...new Set(list)].slice(0, MOST_ADDRESSES), ttl: Math.min(...ttls) };
    }
    const alias = here.find((record) => record.type === "CNAME");
    if (alias?.type === "CNAME") ttls.push(ttlOf(alias));
    owner = alias?.type === "CNAME" ? hostName(alias.data) : undefined;
  }
  return { code: codeOf(packet), addresses: [], ttl: 0 };
}

function codeOf(packet: Packet): number {
  return (packet.flags ?? 0) & 0xf;
}

function ttlOf(record: object | undefined): number {
  return record !== undefined && "ttl" in record && typeof record.ttl === "number" ? record.ttl : 0;
}

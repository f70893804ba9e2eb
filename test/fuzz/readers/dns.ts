/** Fuzzes the readers of DNS messages: questions of sandboxes, and answers of resolvers. */

import { decode } from "dns-packet";
import { answers, failure, isQuestion, withId } from "../../../agent/egress/dns/message.ts";
import {
  ask,
  CODE,
  fit,
  readQuestion,
  respond,
  respondAddresses,
  respondAlias,
} from "../../../agent/egress/dns/question.ts";
import { hostName } from "../../../shared/policy/names.ts";
import { must, type Reader } from "../reader.ts";

const ID = 7;
const question = (name: string, type: "A" | "CNAME" = "A") => withId(ask(name, type), ID);

const ADDRESSES = ["198.51.100.7", "203.0.113.9"];

function answered(name: string): Buffer {
  const message = question(name);
  const read = readQuestion(message);
  if (read === undefined) throw new Error("a question of our own is not read");
  return respondAddresses(message, read, { addresses: ADDRESSES, ttl: 60 });
}

/** Returns the name in the question as a library reads it; undefined when the library refuses the message. */
function nameByLibrary(message: Buffer): string | undefined {
  try {
    return decode(message).questions?.[0]?.name;
  } catch {
    return undefined;
  }
}

export const dns: readonly Reader[] = [
  {
    name: "dns-question",
    promise:
      "never throws; the name is the one that another reader sees; an answer of ours repeats the question and fits",
    seeds: () => [question("example.com"), question("a.b.c.example"), question("x".repeat(63)), question("n", "CNAME")],
    words: ["\x07example\x03com\0", "\0", "\xc0\x0c", "\0\x01\0\x01", "\0\x29", "\x3f", "\x40"],
    longest: 1_500,
    share: 60_000,
    check(input) {
      if (!isQuestion(input)) return;
      const broken = failure(input);
      must(broken.length <= input.length && (broken.readUInt16BE(2) & 0x800f) === 0x8002, "the failure is no failure");
      const read = readQuestion(input);
      if (read === undefined) return;
      must(
        read.end <= input.length && read.udpBytes >= 512 && read.udpBytes <= 4_096,
        "the question ends beyond itself",
      );
      const name = read.name === undefined ? undefined : hostName(read.name);
      const theirs = nameByLibrary(input);
      if (name !== undefined && theirs !== undefined)
        must(hostName(theirs) === name, `the library reads ${theirs}, we read ${name}`);
      const reply = respondAddresses(input, read, { addresses: ADDRESSES, ttl: 60 });
      must(fit(reply, input, read).length <= Math.max(read.udpBytes, read.end), "an answer over UDP is too long");
      must(
        answers(respond(input, read, CODE.ok), input, input.readUInt16BE(0)),
        "an answer of ours is to another question",
      );
      if (name !== undefined) {
        const alias = respondAlias(input, read, { alias: name, ttl: 1 });
        must(alias.length <= read.end + 12 + 255, "an alias is longer than names are");
      }
    },
  },
  {
    name: "dns-answer",
    promise: "never throws; an answer that is taken has the id and the question of ours",
    seeds: () => [answered("example.com"), answered("a.b.c.example"), failure(question("example.com"))],
    words: ["\x07example\x03com\0", "\x07EXAMPLE\x03com\0", "\xc0\x0c", "\0", "\0\x01\0\x01"],
    longest: 1_500,
    share: 60_000,
    check(input) {
      const ours = question("example.com");
      if (!answers(input, ours, ID)) return;
      must(
        input.readUInt16BE(0) === ID && (input.readUInt16BE(2) & 0x8000) !== 0,
        "a question was taken for an answer",
      );
      if (input.readUInt16BE(4) === 0) return;
      const name = nameByLibrary(input);
      if (name !== undefined) must(name.toLowerCase() === "example.com", `an answer about ${name} was taken`);
    },
  },
];

import { expect, test } from "vitest";
import { answers, failure, isQuestion, withId } from "../../../../agent/egress/dns/message.ts";
import { parseResolvConf, parseUpstreamResolvers } from "../../../../agent/egress/dns/upstream-resolvers.ts";

const NAME = Buffer.from("\x07example\x03com\x00\x00\x01\x00\x01", "latin1");

function message(flags: number, counts: readonly number[] = [1, 0, 0, 0], name = NAME): Buffer {
  const header = Buffer.alloc(12);
  header.writeUInt16BE(0x1234, 0);
  header.writeUInt16BE(flags, 2);
  for (const [index, count] of counts.entries()) header.writeUInt16BE(count, 4 + index * 2);
  return Buffer.concat([header, name]);
}

const QUERY = 0x0100;
const RESPONSE = 0x8180;

test("only a query with one question is forwarded", () => {
  expect(isQuestion(message(QUERY))).toBe(true);
  expect(isQuestion(message(RESPONSE))).toBe(false);
  expect(isQuestion(message(QUERY, [2, 0, 0, 0]))).toBe(false);
  expect(isQuestion(message(0x2800))).toBe(false);
  expect(isQuestion(Buffer.alloc(3))).toBe(false);
  expect(isQuestion(Buffer.concat([message(QUERY), Buffer.alloc(2_000)]))).toBe(false);
});

test("an answer must be a response to the same id and question", () => {
  const question = message(QUERY);
  const reply = withId(message(RESPONSE), 77);
  expect(answers(reply, question, 77)).toBe(true);
  expect(answers(reply, question, 78)).toBe(false);
  expect(answers(withId(message(QUERY), 77), question, 77)).toBe(false);
  const other = withId(
    message(RESPONSE, [1, 0, 0, 0], Buffer.from("\x04evil\x03com\x00\x00\x01\x00\x01", "latin1")),
    77,
  );
  expect(answers(other, question, 77)).toBe(false);
  const shouted = Buffer.from("\x07EXAMPLE\x03com\x00\x00\x01\x00\x01", "latin1");
  expect(answers(withId(message(RESPONSE, [1, 0, 0, 0], shouted), 77), question, 77)).toBe(true);
});

test("the message of a failure repeats the question", () => {
  const question = Buffer.concat([message(QUERY, [1, 0, 0, 1]), Buffer.alloc(11)]);
  const reply = failure(question);
  expect(reply.readUInt16BE(0)).toBe(0x1234);
  expect(reply.readUInt16BE(2)).toBe(0x8182);
  expect([4, 6, 8, 10].map((at) => reply.readUInt16BE(at))).toEqual([1, 0, 0, 0]);
  expect(reply.subarray(12)).toEqual(NAME);
});

test("the message of a failure has no question when the question's name does not end", () => {
  const reply = failure(message(QUERY, [1, 0, 0, 0], Buffer.from("\x3fx", "latin1")));
  expect(reply).toHaveLength(12);
  expect(reply.readUInt16BE(4)).toBe(0);
});

test("resolvers are addresses with or without a port", () => {
  expect(parseUpstreamResolvers("192.0.2.1, 192.0.2.2:5353,[2001:db8::1]:54")).toEqual([
    { host: "192.0.2.1", port: 53 },
    { host: "192.0.2.2", port: 5353 },
    { host: "2001:db8::1", port: 54 },
  ]);
  expect(parseUpstreamResolvers("")).toEqual([]);
  for (const wrong of ["dns.example", "192.0.2.1:99999", "192.0.2.1:x", "[::1"]) {
    expect(() => parseUpstreamResolvers(wrong)).toThrow(/not an address/);
  }
  expect(
    parseResolvConf("# nameserver 1.1.1.1\nnameserver 192.0.2.9\nsearch x\nnameserver fe80::1%eth0\nnameserver bad\n"),
  ).toEqual([
    { host: "192.0.2.9", port: 53 },
    { host: "fe80::1", port: 53 },
  ]);
});

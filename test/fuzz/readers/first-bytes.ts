/** Fuzzes how the egress process finds the name that a connection is for in the connection's first bytes. */

import { type Glimpse, glimpseServerName } from "../../../agent/egress/sniff/client-hello.ts";
import { glimpseHost } from "../../../agent/egress/sniff/request-head.ts";
import { hostName, hostOfHeader } from "../../../shared/policy/names.ts";
import { clientHello, handMade, inRecords, serverNames } from "../../support/egress/hello.ts";
import { hostSeenByNode, nameSeenByOpenssl } from "../other-readers.ts";
import type { Random } from "../random.ts";
import { must, type Reader } from "../reader.ts";

type Look = (bytes: Buffer) => Glimpse;

/**
 * Checks that the reading does not depend on cuts: a decision about a beginning stays, and "more" never asks for too much.
 */
function checkGlimpse(look: Look, input: Buffer, random: Random): Glimpse {
  const whole = look(input);
  if (whole.is === "name")
    must(hostName(whole.name) === whole.name, `the name ${whole.name} is not spelled as names are`);
  if (whole.is === "more") must(whole.bytes > input.length, "it asks for bytes that it has");
  const cut = random.below(input.length + 1);
  const first = look(input.subarray(0, cut));
  if (first.is !== "more") must(same(first, whole), `the first ${cut} bytes are read otherwise than all of them`);
  else if (first.bytes > input.length) must(whole.is !== "name", "it saw a name in fewer bytes than it had asked for");
  return whole;
}

function same(one: Glimpse, other: Glimpse): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

const SNI = 0;
const hellos = async () => {
  const real = await clientHello("example.com");
  const named = (...names: string[]) => serverNames(...names.map((name) => Buffer.from(name)));
  return [
    real,
    await clientHello(),
    inRecords(real, 100),
    inRecords(real, 1),
    handMade([[SNI, named("a.test")]]),
    handMade([[SNI, named("a.test", "b.test")]]),
    handMade([[0xfe0d, Buffer.alloc(60)], [SNI, named("outer.test")]]), // biome-ignore format: one line a hello
    handMade([[SNI, named("a.test")], [SNI, named("b.test")]]), // biome-ignore format: one line a hello
  ];
};

const REQUESTS = [
  "GET / HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n",
  "POST /a?b=c HTTP/1.1\r\nhost:example.com:80\r\nContent-Length: 3\r\n\r\nabc",
  "GET http://example.com/a HTTP/1.1\r\nHost: example.com\r\n\r\n",
  "OPTIONS * HTTP/1.1\r\nHost: a.b.example.com\r\nX: y\r\n\r\n",
  "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
  "GET / HTTP/1.0\r\nHost: one.test\r\nHost: two.test\r\n\r\n",
];
const REQUEST_WORDS = [
  "Host:",
  "Host: other.test\r\n",
  "\r\n",
  "\r\n\r\n",
  "\n",
  "\r",
  " ",
  "\t",
  "\0",
  "http://other.test",
  "user@",
  "[::1]",
  "127.0.0.1",
  ".",
  ":",
  "%2e",
  "HTTP/1.1",
  "Transfer-Encoding: chunked\r\n",
];

const NODE_AGREES_SHARE = 3_000;

export const firstBytes: readonly Reader[] = [
  {
    name: "tls-hello",
    promise: "never throws; one reading however it is cut; a name is spelled as policies spell names",
    seeds: hellos,
    words: ["\0\0", "\x16\x03\x01", "a.test", "\0\x06a.test", "\0", ".", "xn--a"],
    share: 60_000,
    check: (input, random) => void checkGlimpse(glimpseServerName, input, random),
  },
  {
    name: "tls-hello-beside-openssl",
    promise: "where OpenSSL, as a server, sees a name and we see one, it is the same",
    seeds: hellos,
    words: ["\0\x06a.test", "a.test", "b.test", "\0"],
    share: 1_500,
    async check(input) {
      const ours = glimpseServerName(input);
      if (ours.is !== "name") return;
      const theirs = await nameSeenByOpenssl(input);
      if (theirs !== undefined) must(hostName(theirs) === ours.name, `OpenSSL reads ${theirs}, we read ${ours.name}`);
    },
  },
  {
    name: "request-host",
    promise: "never throws; one reading however it is cut; a name is spelled as policies spell names",
    seeds: () => REQUESTS,
    words: REQUEST_WORDS,
    share: 60_000,
    check: (input, random) => void checkGlimpse(glimpseHost, input, random),
  },
  {
    name: "request-host-beside-node",
    promise: "where Node's HTTP server takes the request and we see a host, it is the same",
    seeds: () => REQUESTS,
    words: REQUEST_WORDS,
    share: NODE_AGREES_SHARE,
    async check(input) {
      const ours = glimpseHost(input);
      if (ours.is !== "name") return;
      const theirs = await hostSeenByNode(input);
      if (theirs === undefined) return;
      must(hostOfHeader(theirs.host) === ours.name, `Node reads the host ${theirs.host}, we read ${ours.name}`);
      const target = /^https?:\/\//i.test(theirs.url) ? new URL(theirs.url).hostname : undefined;
      if (target !== undefined) must(hostName(target) === ours.name, `Node reads the target ${theirs.url}`);
    },
  },
];

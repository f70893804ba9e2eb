/** Fuzzes what the header rewriter checks of a request before it forwards any byte. */

import { checkHead, Refusal, valuesOf } from "../../../agent/egress/rewrite/request-head.ts";
import { must, type Reader } from "../reader.ts";

const DESTINATION = { hostname: "api.example.com", port: 443, tls: true };
const MOST_REFUSAL_CHARACTERS = 400;

const HEADS = [
  "GET / 1.1\nHost\napi.example.com\nAccept\n*/*",
  "POST /v1/x?y=1 1.1\nHost\nAPI.example.com:443\nContent-Length\n5\nContent-Type\na/b",
  "PUT https://api.example.com/v1 1.1\nhost\napi.example.com\nTransfer-Encoding\nchunked\nConnection\nclose, X-A\nX-A\n1",
  "OPTIONS * 1.0\nHost\napi.example.com\nhost\nother.example.com",
  "CONNECT api.example.com:443 1.1\nHost\napi.example.com:443",
];

/** The request line, then names and values of headers in turn, one on each line: as Node's parser returns them. */
function headOf(text: string) {
  const [line = "", ...rawHeaders] = text.split("\n");
  const [method = "", url = "", httpVersion = "1.1"] = line.split(" ");
  return { method, url, httpVersion, rawHeaders: rawHeaders.slice(0, rawHeaders.length & ~1) };
}

function pathOf(head: ReturnType<typeof headOf>): string | undefined {
  try {
    return checkHead(head, DESTINATION);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    must(error.message.length <= MOST_REFUSAL_CHARACTERS, `the refusal has ${error.message.length} characters`);
    must(/^[\x20-\x7e]*$/.test(error.message), "the refusal is not printable");
    return undefined;
  }
}

export const rewriter: readonly Reader[] = [
  {
    name: "rewriter-request",
    promise: "throws its own refusals only, short and printable; what passes has one host, the rule's, and one framing",
    seeds: () => HEADS,
    words: [
      "Host\n",
      "host\n",
      "Content-Length\n",
      "Transfer-Encoding\n",
      "chunked",
      "http://",
      "https://",
      ":",
      "@",
      "/",
      "*",
      "\0",
    ],
    share: 40_000,
    check(input) {
      const head = headOf(input.toString("latin1"));
      const path = pathOf(head);
      if (path === undefined) return;
      must(path.startsWith("/") || (path === "*" && head.method === "OPTIONS"), `the path is '${path}'`);
      const [host = "", ...others] = valuesOf(head.rawHeaders, "host");
      must(others.length === 0 && /^api\.example\.com\.?(:0*443)?$/i.test(host), `the host is '${host}'`);
      const [length, coding] = ["content-length", "transfer-encoding"].map((name) => valuesOf(head.rawHeaders, name));
      must((length?.length ?? 0) + (coding?.length ?? 0) <= 1, "the request has two framings");
    },
  },
];

/**
 * Fuzzes what envd reads of requests: ranges, encodings, conditions, metadata, multipart bodies, signatures, its helper's
 * frames.
 */

import { checkConditions, chooseRange, rangeApplies } from "../../../envd/files/byte-range.ts";
import { metadataOf } from "../../../envd/files/metadata-headers.ts";
import { boundaryOf, readParts } from "../../../envd/files/multipart.ts";
import { negotiateEncoding } from "../../../envd/files/negotiate.ts";
import { checkSignature, signFile } from "../../../envd/files/signature.ts";
import { parseInit } from "../../../envd/init/init-request.ts";
import { keepaliveMs } from "../../../envd/rpc/keepalive.ts";
import { AnswerSplitter } from "../../../envd/system/frames.ts";
import { fileSignature } from "../../../shared/ids.ts";
import type { Random } from "../random.ts";
import { must, type Reader, unlessRefused, unlessRefusedLater } from "../reader.ts";

const SIZES = [0, 1, 10, 4_096, 2 ** 40];
const MODIFIED = { etag: '"1-2"', modifiedMs: 1_700_000_000_000 };
const TOKEN = "0123456789abcdef";
const EXPIRATION = "1700000000";
const BEFORE_MS = 1_600_000_000_000;
const METADATA_BYTES = 4_096;
const DAY_MS = 86_400_000;

/** Reads a body that is cut anywhere, and returns its parts as text, or the message of the error. */
async function partsOf(body: Buffer, cuts: readonly number[]): Promise<string> {
  async function* pieces() {
    let from = 0;
    for (const at of [...cuts, body.length]) {
      yield [body.subarray(from, at)];
      from = at;
    }
  }
  const parts: string[] = [];
  const failure = await unlessRefusedLater(["bad_request"], async () => {
    for await (const part of readParts(pieces(), "XX")) {
      const content: Buffer[] = [];
      for await (const some of part.body) content.push(...some.map((piece) => Buffer.from(piece)));
      parts.push(JSON.stringify([part.name, part.filename, Buffer.concat(content).toString("latin1")]));
    }
    return "whole";
  });
  return `${failure ?? "malformed"} ${parts.join(" ")}`;
}

function someCuts(length: number, random: Random): readonly number[] {
  return Array.from({ length: random.below(6) }, () => random.below(length + 1)).toSorted((a, b) => a - b);
}

const part = (disposition: string, body: string) =>
  `--XX\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${body}\r\n`;

function frame(kind: number, id: number, body: string): Buffer {
  const bytes = Buffer.alloc(9 + body.length);
  bytes.writeUInt32LE(5 + body.length, 0);
  bytes.writeUInt8(kind, 4);
  bytes.writeUInt32LE(id, 5);
  bytes.write(body, 9);
  return bytes;
}

export const envd: readonly Reader[] = [
  {
    name: "byte-range",
    promise: "never throws; the bytes exist and are in order; a condition is one of three answers",
    seeds: () => [
      "bytes=0-10",
      "bytes=-5",
      "bytes=3-",
      "bytes=0-0,5-6",
      '"1-2"',
      'W/"a", "1-2"',
      "Wed, 21 Oct 2015 07:28:00 GMT",
    ],
    words: ["bytes=", "-", ",", "*", "W/", '"', "99999999999999999999", " "],
    longest: 200,
    share: 60_000,
    check(input, random) {
      const header = input.toString("latin1");
      const size = random.pick(SIZES);
      const chosen = chooseRange(header, size);
      if (typeof chosen !== "string")
        must(
          chosen.from >= 0 && chosen.from <= chosen.to && chosen.to < size,
          `${chosen.from}-${chosen.to} of ${size}`,
        );
      rangeApplies(header, MODIFIED);
      const outcome = checkConditions({ ifMatch: header, ifModifiedSince: header }, MODIFIED);
      must(["send", "not modified", "failed"].includes(outcome), "no outcome");
    },
  },
  {
    name: "accept-encoding",
    promise: "throws its own error only; a coding that is refused by name is not chosen",
    seeds: () => ["gzip, deflate, br", "identity;q=0", "gzip;q=0.5, identity;q=1", "*;q=0", "x-gzip"],
    words: ["gzip", "identity", "*", ";q=", "0", "1.000", ",", " "],
    longest: 300,
    share: 60_000,
    check(input) {
      const header = input.toString("latin1");
      const chosen = unlessRefused(["not_acceptable"], () => negotiateEncoding(header, 2_000));
      if (/^gzip;q=0$/.test(header)) must(chosen === "identity", "a refused coding was chosen");
      must(chosen === undefined || chosen === "gzip" || chosen === "identity", "an unknown coding was chosen");
    },
  },
  {
    name: "metadata-headers",
    promise: "throws its own error only; keys and values are printable and bounded",
    seeds: () => ["X-Metadata-Owner\nme\nAccept\n*/*", "x-metadata-a\n\nX-METADATA-B\nx y"],
    words: ["x-metadata-", "\n", "\0", "\r", "\u00e4", " "],
    longest: 6_000,
    share: 40_000,
    check(input) {
      const raw = input.toString("latin1").split("\n");
      const metadata = unlessRefused(["bad_request"], () => metadataOf(raw));
      const entries = Object.entries(metadata ?? {});
      must(
        entries.every(([key, value]) => /^[!-~]+$/.test(key) && /^[ -~]*$/.test(value)),
        "not printable",
      );
      must(entries.join("").length <= METADATA_BYTES, "larger than its limit");
    },
  },
  {
    name: "multipart",
    promise: "throws its own error only; the parts are the same however the body is cut",
    seeds: () => [
      `${part('name="file"; filename="a/b.txt"', "one\r\n--X two")}${part('name="x"', "")}--XX--\r\n`,
      `--XX\r\n\r\nno headers\r\n--XX--`,
      `preamble\r\n${part("filename*=utf-8''%c3%bc", "y")}--XX--`,
    ],
    words: [
      "--XX",
      "\r\n--XX\r\n",
      "\r\n--XX--",
      "\r\n\r\n",
      "\r\n",
      "--",
      '"',
      "\\",
      "filename*=utf-8''%",
      "; name=",
      "\0",
    ],
    longest: 2_000,
    share: 8_000,
    async check(input, random) {
      unlessRefused(["bad_request"], () => boundaryOf(input.toString("latin1")));
      const whole = await partsOf(input, []);
      const cut = await partsOf(input, someCuts(input.length, random));
      must(whole === cut, `whole: ${whole}\n  cut: ${cut}`);
    },
  },
  {
    name: "file-signature",
    promise: "throws its own error for every signature but the right one; the edge makes the same signature",
    seeds: () => [signFile({ path: "/a", operation: "read", username: "user", expiration: EXPIRATION }, TOKEN)],
    words: ["v1_", "=", "+", "/", ":"],
    longest: 200,
    share: 40_000,
    check(input) {
      const signature = input.toString("latin1");
      const signed = { path: "/a", operation: "read", username: "user", expiration: EXPIRATION } as const;
      const taken = unlessRefused(["unauthorized"], () => {
        checkSignature({ ...signed, signature }, TOKEN, BEFORE_MS);
        return true;
      });
      if (taken === true) must(signature === signFile(signed, TOKEN), "another signature was taken");
      const path = { ...signed, path: signature };
      must(signFile(path, TOKEN) === fileSignature({ ...path, token: TOKEN }), "edge and envd sign differently");
    },
  },
  {
    name: "init-body",
    promise: "throws its own error only; variables are such that a process can have them",
    seeds: () => ['{"envVars":{"A":"b"},"accessToken":"t","timestamp":"2026-01-01T00:00:00Z","caBundle":""}'],
    words: ["null", "{}", "[]", '"', ":", ",", "=", "\\u0000", "1e9", "__proto__", "envVars"],
    longest: 1_000,
    share: 40_000,
    check(input) {
      let body: unknown;
      try {
        body = JSON.parse(input.toString("utf8"));
      } catch {
        return;
      }
      if (typeof body !== "object" || body === null || Array.isArray(body)) return;
      const read = unlessRefused(["bad_request"], () => parseInit(body as Record<string, unknown>));
      for (const [name, value] of Object.entries(read?.settings.envVars ?? {}))
        must(name !== "" && !/[=\0]/.test(name) && !value.includes("\0"), `the variable ${JSON.stringify(name)}`);
    },
  },
  {
    name: "keepalive-header",
    promise: "never throws; between a second and a day",
    seeds: () => ["90", "1", "86400"],
    words: ["0", "-", ".", "e", " "],
    longest: 40,
    share: 40_000,
    check(input) {
      const ms = keepaliveMs(input.toString("latin1"));
      must(ms >= 1_000 && ms <= DAY_MS, `${ms} ms`);
    },
  },
  {
    name: "helper-frames",
    promise: "whole frames are the same however the stream is cut",
    seeds: () => [Buffer.concat([frame(100, 1, "one"), frame(101, 2, ""), frame(1, 3, "three")])],
    words: [],
    longest: 400,
    share: 40_000,
    check(input, random) {
      // The helper is part of this product and sends only whole frames.
      const whole = Buffer.concat([frame(1, input.length, input.toString("latin1").slice(0, 50)), frame(2, 2, "x")]);
      const splitter = new AnswerSplitter();
      const ids: number[] = [];
      let from = 0;
      for (const at of [...someCuts(whole.length, random), whole.length]) {
        ids.push(...splitter.push(whole.subarray(from, at)).map(({ id }) => id));
        from = at;
      }
      must(ids.join() === `${input.length},2`, `frames ${ids.join()}`);
    },
  },
];

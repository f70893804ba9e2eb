/**
 * Signed requests to an S3-compatible service, in path style. A body is in memory, so each attempt sends all of it, with a signature
 * of its own; what an attempt that was cut may have done, the next one does again.
 */

import { setTimeout as delay } from "node:timers/promises";
import { AwsV4Signer } from "aws4fetch";
import { Agent, request } from "undici";
import { within } from "../../../shared/program/deadline.ts";
import { BlobError } from "../content/blob-error.ts";
import { sha256 } from "../content/steps.ts";
import { type Answer, failure, mayPass, unanswered } from "./s3-answers.ts";

export interface S3Place {
  /** `https://host:port`, without a path. */
  readonly endpoint: string;
  readonly bucket: string;
  /** `` or `some/folder`. */
  readonly prefix: string;
  readonly region: string;
}

export interface S3Secrets {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

interface S3Request {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Below the prefix; absent: the bucket itself. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** What the answer may hold at most; absent: next to nothing. */
  readonly answerBytes?: number;
  /** Statuses that are answers; every other one is an error. */
  readonly expect: readonly number[];
  /** Completes "the store … cannot". */
  readonly what: string;
}

export interface S3Requests {
  readonly name: string;
  /** Path of a key below the bucket. */
  path(key: string): string;
  /** @throws {BlobError} */
  send(asked: S3Request, signal: AbortSignal): Promise<Answer>;
  close(): Promise<void>;
}

export interface S3Options {
  /** Waits between attempts, milliseconds; there is one attempt more than waits. */
  readonly waits?: readonly number[];
  /** Unix milliseconds, for signatures. */
  readonly now?: () => number;
  /** Time for an attempt in which next to nothing is sent or read, and for each silence in a longer answer. */
  readonly limitMs?: number;
  /** Objects of a page of a list, at most a thousand. */
  readonly page?: number;
}

const WAITS = [100, 300, 1_000, 3_000];
const LIMIT_MS = 30_000;
const CONNECT_MS = 5_000;
/** What is sent and what is read get a second more for each of these: six blobs of 4 MiB at a time pass a line of 3 Mbit/s. */
const BYTES_A_SECOND = 64 * 1024;
/** Of all transfers together, which have a limit of their own: this one only keeps a program's descriptors. */
const CONNECTIONS = 64;
/** More than any object of ours, and than any list. */
const MAX_ANSWER_BYTES = 96 * 1024 * 1024;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

/** @throws {TypeError} for a place that is not written as it must be */
export function s3Requests(place: S3Place, secrets: S3Secrets, options: S3Options = {}): S3Requests {
  const { waits = WAITS, now = Date.now, limitMs = LIMIT_MS } = options;
  const base = checked(place);
  const folder = place.prefix === "" ? "" : `${place.prefix}/`;
  const name = `the store s3://${place.bucket}/${folder}`;
  const dispatcher = new Agent({ connections: CONNECTIONS, connect: { timeout: CONNECT_MS } });
  // Holds the signing key of the day.
  const cache = new Map<string, ArrayBuffer>();

  const signed = async ({ method, headers, body }: S3Request, url: URL) => {
    // The service refuses a body that arrives changed.
    const digest = await sha256(body ?? new Uint8Array());
    const signer = new AwsV4Signer({
      ...secrets,
      service: "s3",
      region: place.region,
      method,
      url: url.href,
      headers: { ...headers, "x-amz-content-sha256": digest.toString("hex") },
      cache,
      datetime: new Date(now()).toISOString().replaceAll(/[-:]|\.\d{3}/g, ""),
    });
    return Object.fromEntries((await signer.sign()).headers);
  };

  const timeFor = (bytes: number) => limitMs + Math.ceil(bytes / BYTES_A_SECOND) * 1_000;

  const attempt = async (asked: S3Request, url: URL, signal: AbortSignal): Promise<Answer> => {
    const response = await request(url, {
      dispatcher,
      method: asked.method,
      headers: await signed(asked, url),
      ...(asked.body === undefined ? {} : { body: asked.body }),
      // It counts while the body is still being sent.
      headersTimeout: timeFor(asked.body?.length ?? 0),
      bodyTimeout: limitMs,
      signal,
    });
    const parts: Buffer[] = [];
    let length = 0;
    for await (const part of response.body as AsyncIterable<Buffer>) {
      length += part.length;
      if (length > MAX_ANSWER_BYTES) throw new Error(`the answer has more than ${MAX_ANSWER_BYTES} bytes`);
      parts.push(part);
    }
    return { status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) };
  };

  return {
    name,
    path: (key) => folder + key,

    async send(asked, signal) {
      const url = new URL(`${base}/${place.bucket}${asked.key === undefined ? "" : `/${folder}${asked.key}`}`);
      for (const [field, value] of Object.entries(asked.query ?? {})) url.searchParams.set(field, value);
      const limitOfAll = timeFor((asked.body?.length ?? 0) + (asked.answerBytes ?? 0));
      for (let tried = 0; ; tried++) {
        signal.throwIfAborted();
        const wait = waits[tried];
        try {
          const answer = await within(limitOfAll, (limit) => attempt(asked, url, AbortSignal.any([signal, limit])));
          if (asked.expect.includes(answer.status)) return answer;
          if (wait === undefined || !mayPass(answer)) throw failure(name, asked.what, answer);
        } catch (error) {
          signal.throwIfAborted();
          if (error instanceof BlobError) throw error;
          if (wait === undefined) throw unanswered(name, asked.what, error);
        }
        // A signal of its own, because Node warns of many listeners on one. Machines that lost the store at the same moment do not come back at the same moment.
        await delay(wait * (0.5 + Math.random()), undefined, { signal: AbortSignal.any([signal]) });
      }
    },

    close: () => dispatcher.destroy(),
  };
}

function checked({ endpoint, bucket, prefix }: S3Place): string {
  const url = new URL(endpoint);
  if (!/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search !== "" || url.username !== "")
    throw new TypeError(`${endpoint} is no address of an S3 service: it is https://HOST or https://HOST:PORT`);
  if (!NAME.test(bucket)) throw new TypeError(`${bucket} is no name of a bucket`);
  // Segments that a URL changes would be other keys than the ones that are signed.
  if (prefix !== "" && !prefix.split("/").every((segment) => NAME.test(segment)))
    throw new TypeError(
      `${prefix} is no prefix of a store: its parts are letters, digits, dots, hyphens and underscores`,
    );
  return url.origin;
}

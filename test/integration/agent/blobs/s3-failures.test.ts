/** An S3 service that fails in ways that a real one cannot be made to fail on purpose. */

import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { inspect } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { type S3Store, s3Store } from "../../../../agent/blobs/stores/s3.ts";
import type { S3Options } from "../../../../agent/blobs/stores/s3-requests.ts";
import { listening } from "../../../support/peers/listening.ts";
import { randomKey } from "./store-contract.ts";

const { signal } = new AbortController();
const KEY_ID = "an-access-key";
const SECRET = "a-secret-that-stays-out-of-errors";

interface Asked {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

interface Parts {
  readonly count: number;
  readonly everyMs: number;
}

/** Undefined: the connection is reset; "none": the request stays without an answer. */
type Answer =
  | "none"
  | {
      readonly status: number;
      readonly body?: string | Buffer;
      readonly headers?: Record<string, string>;
      /** The connection is reset after the body. */
      readonly cut?: boolean;
      /** So long the service reads the request before it answers. */
      readonly readsMs?: number;
      /** The body comes in this many parts, with this time between them. */
      readonly parts?: Parts;
    }
  | undefined;

/** A service that gives the answers of the test, and keeps what it was asked. */
async function service(
  answer: (asked: Asked, times: number) => Answer,
  options: S3Options = {},
): Promise<{ store: S3Store; asked: Asked[] }> {
  const asked: Asked[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const url = new URL(request.url ?? "", "http://service");
    const one = { method: request.method ?? "", url, headers: request.headers, body: Buffer.concat(parts) };
    asked.push(one);
    const given = answer(one, asked.length);
    if (given === "none") return;
    if (given === undefined) {
      request.socket.destroy();
      return;
    }
    await delay(given.readsMs ?? 0);
    response.writeHead(given.status, given.headers);
    if (given.cut === true) response.write(given.body, () => request.socket.destroy());
    else if (given.parts !== undefined) await give(response, Buffer.from(given.body ?? ""), given.parts);
    else response.end(one.method === "HEAD" ? undefined : given.body);
  };
  const server = createServer((request, response) => {
    void handle(request, response).catch(() => request.socket.destroy());
  });
  const port = await listening(server);
  const store = s3Store(
    { endpoint: `http://127.0.0.1:${port}`, bucket: "bucket", prefix: "", region: "us-east-1" },
    { accessKeyId: KEY_ID, secretAccessKey: SECRET },
    { waits: [1, 1, 1], ...options },
  );
  onTestFinished(async () => {
    await store.close();
    server.closeAllConnections();
    server.close();
  });
  return { store, asked };
}

async function give(response: ServerResponse, body: Buffer, { count, everyMs }: Parts): Promise<void> {
  const size = Math.ceil(body.length / count);
  for (let from = 0; from < body.length; from += size) {
    response.write(body.subarray(from, from + size));
    await delay(everyMs);
  }
  response.end();
}

const error = (status: number, code: string) => ({
  status,
  body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>a reason</Message></Error>`,
});

describe("a request is sent again, whole and with a signature of its own,", () => {
  test.each<{ named: string; first: Answer }>([
    { named: "when the service is busy", first: error(503, "SlowDown") },
    { named: "when it fails inside", first: error(500, "InternalError") },
    { named: "when a gateway before it has lost it", first: { status: 502, body: "<html>" } },
    { named: "when it has too many requests", first: { status: 429 } },
    { named: "when the request came too slowly", first: error(400, "RequestTimeout") },
    { named: "when it came too slowly for a gateway", first: { status: 408 } },
    { named: "when the connection is reset", first: undefined },
  ])("$named", async ({ first }) => {
    const { store, asked } = await service((_, times) => (times < 3 ? first : { status: 200 }));
    const bytes = randomBytes(200_000);
    await store.put(randomKey(), bytes, signal, true);
    expect(asked).toHaveLength(3);
    for (const { body, headers } of asked) {
      expect(body.equals(bytes)).toBe(true);
      expect(headers["authorization"]).toMatch(/^AWS4-HMAC-SHA256 Credential=an-access-key\//);
      expect(headers["x-amz-content-sha256"]).toMatch(/^[0-9a-f]{64}$/);
    }
  });
});

test.each<{ named: string; answer: Answer; fault: string; times: number }>([
  { named: "that refuses the key", answer: error(403, "InvalidAccessKeyId"), fault: "denied", times: 1 },
  { named: "that refuses the right", answer: error(403, "AccessDenied"), fault: "denied", times: 1 },
  { named: "whose quota is used up", answer: error(403, "QuotaExceeded"), fault: "full", times: 1 },
  { named: "whose disks are full", answer: error(507, "XMinioStorageFull"), fault: "full", times: 1 },
  { named: "that stays busy", answer: error(503, "SlowDown"), fault: "unreachable", times: 4 },
  {
    named: "that answers with a page of its own",
    answer: { status: 418, body: "<html>" },
    fault: "unreachable",
    times: 1,
  },
])(
  "a service $named is $fault after $times requests, and no error holds the secret",
  async ({ answer, fault, times }) => {
    const { store, asked } = await service(() => answer);
    const failed = await store.put(randomKey(), Buffer.from("x"), signal, true).catch((reason: unknown) => reason);
    expect(failed).toMatchObject({ fault });
    expect(asked).toHaveLength(times);
    expect(JSON.stringify(failed) + String(failed) + String((failed as Error).stack)).not.toContain(SECRET);
  },
);

test("what a service reads slowly has more time than a request with nothing in it, and is sent once", async () => {
  const { store, asked } = await service(() => ({ status: 200, readsMs: 1_500 }), { limitMs: 500 });
  await store.put(randomKey(), randomBytes(640 * 1024), signal, true);
  expect(asked).toHaveLength(1);
});

test("what a service gives slowly arrives, while it never stands still, and is asked for once", async () => {
  const bytes = randomBytes(20_000);
  const headers = { "content-range": "bytes 0-19999/20000" };
  const parts = { count: 16, everyMs: 200 };
  const { store, asked } = await service(() => ({ status: 206, headers, body: bytes, parts }), { limitMs: 2_000 });
  expect((await store.get(randomKey(), signal)).equals(bytes)).toBe(true);
  expect(asked).toHaveLength(1);
});

test("a service that takes requests and answers none is given up, and no error holds the secret", async () => {
  const { store, asked } = await service(() => "none", { limitMs: 300 });
  const failed = await store.size(randomKey(), signal).catch((reason: unknown) => reason);
  expect(failed).toMatchObject({
    fault: "unreachable",
    message: expect.stringMatching(/no answer \((none in time|UND_ERR_HEADERS_TIMEOUT)\)/) as string,
  });
  expect(asked.length).toBeLessThanOrEqual(4);
  expect(inspect(failed, { depth: 20, showHidden: true })).not.toContain(SECRET);
});

test("a service whose pages of a list lead nowhere is not asked for ever", async () => {
  const key = randomKey();
  const page = `<IsTruncated>true</IsTruncated><Contents><Key>${key}</Key><Size>1</Size></Contents>`;
  const { store, asked } = await service(() => ({ status: 200, body: page }));
  expect(await store.list("sha256/", "", signal)).toEqual({ found: [{ key, bytes: 1 }], next: key });
  await expect(store.list("sha256/", key, signal)).rejects.toMatchObject({
    fault: "unreachable",
    message: expect.stringContaining("it begins again at every page") as string,
  });
  expect(asked).toHaveLength(2);
});

test.each([
  { code: "SignatureDoesNotMatch", status: 403, names: ["SVC_BLOB_STORE_ACCESS_KEY", "SVC_BLOB_STORE_SECRET"] },
  { code: "InvalidAccessKeyId", status: 403, names: ["SVC_BLOB_STORE_ACCESS_KEY", "SVC_BLOB_STORE_SECRET"] },
  { code: "AccessDenied", status: 403, names: ["SVC_BLOB_STORE_ACCESS_KEY"] },
  { code: "AuthorizationHeaderMalformed", status: 400, names: ["SVC_BLOB_STORE_REGION"] },
  { code: "PermanentRedirect", status: 301, names: ["SVC_BLOB_STORE_URL", "SVC_BLOB_STORE_REGION"] },
  { code: "NoSuchBucket", status: 404, names: ["SVC_BLOB_STORE"] },
])("what a service says by $code names the settings to mend", async ({ code, status, names }) => {
  const { store } = await service(() => error(status, code));
  const failed = (await store.get(randomKey(), signal).catch((reason: unknown) => reason)) as Error;
  for (const name of [code, ...names]) expect(failed.message).toContain(name);
});

test("an answer that is shorter than it says is asked for again", async () => {
  const bytes = randomBytes(50_000);
  const headers = { "content-length": "50000", "content-range": "bytes 0-49999/50000" };
  const { store, asked } = await service((_, times) =>
    times === 1
      ? { status: 206, headers, body: bytes.subarray(0, 20_000), cut: true }
      : { status: 206, headers, body: bytes },
  );
  expect((await store.get(randomKey(), signal)).equals(bytes)).toBe(true);
  expect(asked).toHaveLength(2);
});

test("a service that knows no ranges gives the whole object, and parts of it", async () => {
  const bytes = randomBytes(3_000);
  const { store } = await service(() => ({ status: 200, body: bytes }));
  expect((await store.get(randomKey(), signal)).equals(bytes)).toBe(true);
  expect((await store.get(randomKey(), signal, { from: 5, length: 10 })).equals(bytes.subarray(5, 15))).toBe(true);
});

test("a service that cannot list unfinished uploads has none to end", async () => {
  const { store } = await service(() => error(501, "NotImplemented"));
  expect(await store.tidy(Date.now(), signal)).toBe(0);
});

describe("an upload in parts", () => {
  const bytes = randomBytes(17 * 1024 * 1024);
  const begun: Answer = { status: 200, body: "<X><UploadId>the-upload</UploadId></X>" };
  const stage = ({ method, url }: Asked) =>
    url.searchParams.has("uploads") ? "begin" : url.searchParams.has("partNumber") ? "part" : method.toLowerCase();

  /** @param complete the answer to the completion; the object is there afterwards if `exists` */
  const uploading = (complete: (times: number) => Answer, exists: boolean) => {
    let completions = 0;
    return service((asked) => {
      switch (stage(asked)) {
        case "begin":
          return begun;
        case "part":
          return { status: 200, headers: { etag: `"part-${asked.url.searchParams.get("partNumber")}"` } };
        case "post":
          return complete(++completions);
        case "head":
          return exists ? { status: 200 } : { status: 404 };
        default:
          return { status: 204 };
      }
    });
  };

  test("sends each part once, and completes with their tags in order", async () => {
    const { store, asked } = await uploading(() => ({ status: 200, body: "<CompleteMultipartUploadResult/>" }), true);
    await store.put(randomKey(), bytes, signal, true);
    const parts = asked.filter((each) => stage(each) === "part");
    const inOrder = parts.toSorted(
      (a, b) => Number(a.url.searchParams.get("partNumber")) - Number(b.url.searchParams.get("partNumber")),
    );
    expect(Buffer.concat(inOrder.map(({ body }) => body)).equals(bytes)).toBe(true);
    const completion = asked.find((each) => stage(each) === "post")?.body.toString("utf8");
    expect(completion?.match(/<PartNumber>\d+/g)).toEqual(["<PartNumber>1", "<PartNumber>2", "<PartNumber>3"]);
  });

  test("whose completion was done, and its answer lost, is complete", async () => {
    const { store } = await uploading((times) => (times === 1 ? undefined : error(404, "NoSuchUpload")), true);
    await store.put(randomKey(), bytes, signal, true);
  });

  test.each<{ named: string; complete: Answer }>([
    { named: "was never done", complete: error(404, "NoSuchUpload") },
    { named: "fails in an answer that began as a success", complete: { ...error(200, "InternalError"), status: 200 } },
  ])("whose completion $named is not stored, and is ended", async ({ complete }) => {
    const { store, asked } = await uploading(() => complete, false);
    await expect(store.put(randomKey(), bytes, signal, true)).rejects.toMatchObject({ fault: "unreachable" });
    expect(asked.at(-1)).toMatchObject({ method: "DELETE" });
    expect(asked.at(-1)?.url.searchParams.get("uploadId")).toBe("the-upload");
  });

  test("of which a part is refused is ended, and its other parts are not sent any more", async () => {
    const { store, asked } = await service((one) => {
      if (stage(one) === "begin") return begun;
      return stage(one) === "part" ? error(403, "AccessDenied") : { status: 204 };
    });
    await expect(store.put(randomKey(), bytes, signal, true)).rejects.toMatchObject({ fault: "denied" });
    expect(asked.at(-1)?.method).toBe("DELETE");
  });
});

test("an object that is replaced while its parts are read is read again from its beginning", async () => {
  const [old, replacement] = [randomBytes(20 * 1024 * 1024), randomBytes(20 * 1024 * 1024)];
  let current = { bytes: old, etag: '"old"' };
  const { store } = await service(({ headers }) => {
    const [, from = 0, to = 0] = (/bytes=(\d+)-(\d+)/.exec(String(headers["range"])) ?? []).map(Number);
    if (headers["if-match"] === '"old"') {
      current = { bytes: replacement, etag: '"new"' };
      return { status: 412 };
    }
    const body = current.bytes.subarray(from, to + 1);
    return {
      status: 206,
      body,
      headers: {
        etag: current.etag,
        "content-range": `bytes ${from}-${from + body.length - 1}/${current.bytes.length}`,
      },
    };
  });
  expect((await store.get(randomKey(), signal)).equals(replacement)).toBe(true);
});

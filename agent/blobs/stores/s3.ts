/**
 * A store in a bucket of an S3-compatible service. It uses what every such service has: single and multipart PUT, GET of ranges,
 * HEAD, DELETE, and lists. A name stands for one content, so "unless there is one" needs no conditional write.
 */

import { within } from "../../../shared/program/deadline.ts";
import { BlobError } from "../content/blob-error.ts";
import { type Answer, failure, field, readListing, readUploads, totalOf } from "./s3-answers.ts";
import { type S3Options, type S3Place, type S3Requests, type S3Secrets, s3Requests } from "./s3-requests.ts";
import { type BlobStore, checkKey, type Range } from "./store.ts";

export interface S3Store extends BlobStore {
  /** Ends its connections. */
  close(): Promise<void>;
}

/** A larger object is sent and read in parts of this size. Services take parts of 5 MiB and more. */
const PART_BYTES = 8 * 1024 * 1024;
const LARGE_BYTES = 16 * 1024 * 1024;
const PARTS_AT_ONCE = 4;
const ABANDON_LIMIT_MS = 10_000;
const PAGE = 1_000;
const REFUSED = [301, 307, 400, 401, 403];
/** Times that a large object may be replaced while its parts are read. */
const CHANGES = 3;

export function s3Store(place: S3Place, secrets: S3Secrets, options: S3Options = {}): S3Store {
  const requests = s3Requests(place, secrets, options);

  const size = async (key: string, signal: AbortSignal): Promise<number | undefined> => {
    checkKey(key);
    const asked = { key, what: `look for ${key}` };
    const answer = await requests.send({ ...asked, method: "HEAD", expect: [200, 404, ...REFUSED] }, signal);
    if (answer.status === 404) return undefined;
    if (answer.status === 200) return Number(answer.headers["content-length"]);
    // An answer to HEAD has no words for the reason, and one to GET has.
    const headers = { range: "bytes=0-0" };
    await requests.send({ ...asked, method: "GET", headers, expect: [200, 206, 404, 416] }, signal);
    throw failure(requests.name, asked.what, answer);
  };

  return {
    name: requests.name,
    size,

    async put(key, bytes, signal, replace = false) {
      checkKey(key);
      if (!replace && (await size(key, signal)) !== undefined) return "present";
      if (bytes.length > LARGE_BYTES) await putInParts(requests, key, bytes, signal);
      else await requests.send({ method: "PUT", key, body: bytes, expect: [200], what: `store ${key}` }, signal);
      return "stored";
    },

    async get(key, signal, range) {
      checkKey(key);
      if (range !== undefined) {
        const { status, body } = await getRange(requests, key, range, signal);
        // A service that knows no ranges answers with all of it.
        return status === 200 ? body.subarray(range.from, range.from + range.length) : body;
      }
      for (let changes = 0; ; changes++) {
        const content = await getWhole(requests, key, signal);
        if (content !== undefined) return content;
        if (changes === CHANGES)
          throw new BlobError("unreachable", `${requests.name} gives ${key} with other parts at every try`);
      }
    },

    async delete(key, signal) {
      checkKey(key);
      await requests.send({ method: "DELETE", key, expect: [200, 204, 404], what: `delete ${key}` }, signal);
    },

    async list(prefix, after, signal) {
      const answer = await requests.send(
        {
          method: "GET",
          query: {
            "list-type": "2",
            prefix: requests.path(prefix),
            "max-keys": String(options.page ?? PAGE),
            ...(after === "" ? {} : { "start-after": requests.path(after) }),
          },
          expect: [200],
          what: `list ${prefix}`,
        },
        signal,
      );
      const { found, more } = readListing(answer.body.toString("utf8"));
      const own = found.map(({ key, bytes }) => ({ key: key.slice(requests.path("").length), bytes }));
      const next = more ? own.at(-1)?.key : undefined;
      // The caller would ask for ever.
      if (next !== undefined && next <= after)
        throw new BlobError("unreachable", `${requests.name} cannot list ${prefix}: it begins again at every page`);
      return { found: own, next };
    },

    async tidy(before, signal) {
      const answer = await requests.send(
        // Services that know no list of uploads in progress end them by rules of their own.
        {
          method: "GET",
          query: { uploads: "", prefix: requests.path("") },
          expect: [200, 405, 501],
          what: "list uploads",
        },
        signal,
      );
      if (answer.status !== 200) return 0;
      const old = readUploads(answer.body.toString("utf8")).filter(({ begunUnixMs }) => begunUnixMs < before);
      for (const { key, uploadId } of old) {
        await abandon(requests, { key: key.slice(requests.path("").length), uploadId }, signal);
      }
      return old.length;
    },

    close: () => requests.close(),
  };
}

interface Upload {
  readonly key: string;
  readonly uploadId: string;
}

async function putInParts(requests: S3Requests, key: string, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  const what = `store ${key}`;
  const begun = await requests.send({ method: "POST", key, query: { uploads: "" }, expect: [200], what }, signal);
  const uploadId = field(begun.body.toString("utf8"), "UploadId");
  if (uploadId === undefined) throw failure(requests.name, what, begun);
  const upload = { key, uploadId };
  try {
    const tags = await inParallel(partsOf(bytes.length), async ({ from, length }, index) => {
      const part = await requests.send(
        {
          method: "PUT",
          key,
          query: { partNumber: String(index + 1), uploadId },
          body: bytes.subarray(from, from + length),
          expect: [200],
          what,
        },
        signal,
      );
      return String(part.headers["etag"]);
    });
    await complete(requests, upload, tags, signal);
  } catch (error) {
    // What cannot be ended now, `tidy` ends.
    await within(ABANDON_LIMIT_MS, (limit) => abandon(requests, upload, limit)).catch(() => undefined);
    throw error;
  }
}

async function complete(
  requests: S3Requests,
  { key, uploadId }: Upload,
  tags: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const parts = tags.map((tag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${tag}</ETag></Part>`);
  const body = Buffer.from(`<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`);
  const what = `store ${key}`;
  // 404: a first attempt, whose answer was lost, has completed it.
  const answer = await requests.send(
    { method: "POST", key, query: { uploadId }, body, expect: [200, 404], what },
    signal,
  );
  // Services begin an answer before they know how it ends: a 200 may hold an error.
  if (answer.status === 200 && answer.body.includes("<CompleteMultipartUploadResult")) return;
  const found = await requests.send({ method: "HEAD", key, expect: [200, 404], what }, signal);
  if (found.status === 404)
    throw failure(requests.name, what, answer.status === 404 ? { ...answer, status: 500 } : answer);
}

async function abandon(requests: S3Requests, { key, uploadId }: Upload, signal: AbortSignal): Promise<void> {
  const what = `end the upload of ${key}`;
  await requests.send({ method: "DELETE", key, query: { uploadId }, expect: [200, 204, 404], what }, signal);
}

/** Undefined: the object was replaced between two parts. */
async function getWhole(requests: S3Requests, key: string, signal: AbortSignal): Promise<Buffer | undefined> {
  const first = await getRange(requests, key, { from: 0, length: LARGE_BYTES }, signal);
  const total = first.status === 206 ? totalOf(first) : undefined;
  if (total === undefined || first.body.length >= total) return first.body;
  const etag = String(first.headers["etag"]);
  const rest = partsOf(total - first.body.length).map(({ from, length }) => ({
    from: from + first.body.length,
    length,
  }));
  const parts = await inParallel(rest, (range) => getRange(requests, key, { ...range, etag }, signal));
  if (parts.some(({ status }) => status === 412)) return undefined;
  return Buffer.concat([first.body, ...parts.map(({ body }) => body)]);
}

async function getRange(
  requests: S3Requests,
  key: string,
  { from, length, etag }: Range & { readonly etag?: string },
  signal: AbortSignal,
): Promise<Answer> {
  const answer = await requests.send(
    {
      method: "GET",
      key,
      headers: { range: `bytes=${from}-${from + length - 1}`, ...(etag === undefined ? {} : { "if-match": etag }) },
      answerBytes: length,
      expect: etag === undefined ? [200, 206, 416] : [200, 206, 412],
      what: `give ${key}`,
    },
    signal,
  );
  return answer.status === 416 ? { ...answer, body: Buffer.alloc(0) } : answer;
}

function partsOf(total: number): Range[] {
  return Array.from({ length: Math.ceil(total / PART_BYTES) }, (_, index) => ({
    from: index * PART_BYTES,
    length: Math.min(PART_BYTES, total - index * PART_BYTES),
  }));
}

/** Results in the order of the items. After a failure nothing more is begun, and what was begun has ended when it is thrown. */
async function inParallel<T, R>(items: readonly T[], work: (item: T, index: number) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const state = { failed: false };
  const next = items.entries();
  const worker = async () => {
    for (const [index, item] of next) {
      if (state.failed) return;
      try {
        results[index] = await work(item, index);
      } catch (error) {
        state.failed = true;
        throw error;
      }
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: PARTS_AT_ONCE }, worker));
  const failed = ended.find((each) => each.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return results;
}

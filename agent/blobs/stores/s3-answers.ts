/**
 * What the answers of an S3-compatible service mean. Pure. Its XML is read by patterns: the few fields that count are flat, and
 * the keys that count are our own, which need no escapes.
 */

import { BlobError, type BlobFault, codeOf } from "../content/blob-error.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** The service's own word for what went wrong; an answer to HEAD has none. */
function errorCode({ body }: Pick<Answer, "body">): string | undefined {
  return field(body.toString("utf8"), "Code");
}

/** Answers after which the same request may succeed. */
export function mayPass({ status, body }: Pick<Answer, "status" | "body">): boolean {
  // A connection that was slow: the request was not done.
  if (status === 400) return errorCode({ body }) === "RequestTimeout";
  return status === 408 || status === 429 || status === 500 || status === 502 || status === 503 || status === 504;
}

const FULL = /^(QuotaExceeded|InsufficientStorage|InsufficientCapacity|XMinioStorageFull|StorageFull|AccountProblem)$/;

/** @param what completes "the store … cannot" */
export function failure(name: string, what: string, answer: Pick<Answer, "status" | "body">): BlobError {
  const code = errorCode(answer);
  const said = code === undefined ? `status ${answer.status}` : `status ${answer.status} ${code}`;
  const fault = faultOf(answer.status, code);
  return new BlobError(fault, `${name} cannot ${what}: it answers ${said}${HINTS.get(code) ?? ""}`);
}

function faultOf(status: number, code: string | undefined): BlobFault {
  if (status === 507 || (code !== undefined && FULL.test(code))) return "full";
  if (status === 401 || status === 403 || code === "AuthorizationHeaderMalformed") return "denied";
  if (status === 404 && code !== "NoSuchBucket") return "missing";
  return "unreachable";
}

const KEYS = "; are the access key and its secret right? (SVC_BLOB_STORE_ACCESS_KEY, SVC_BLOB_STORE_SECRET)";
const ADDRESS = "; is the address that of the bucket's region? (SVC_BLOB_STORE_URL, SVC_BLOB_STORE_REGION)";
/** The way out, where the answer tells it. An upload that failed shows these words without those of a finding. */
const HINTS: ReadonlyMap<string | undefined, string> = new Map([
  ["SignatureDoesNotMatch", KEYS],
  ["InvalidAccessKeyId", KEYS],
  ["AccessDenied", "; may the access key (SVC_BLOB_STORE_ACCESS_KEY) list, read, write and delete there?"],
  ["RequestTimeTooSkewed", "; do the clocks of this machine and of the store differ?"],
  ["AuthorizationHeaderMalformed", "; is the region right? (SVC_BLOB_STORE_REGION)"],
  ["PermanentRedirect", ADDRESS],
  ["TemporaryRedirect", ADDRESS],
  ["NoSuchBucket", "; the bucket does not exist: make it, or correct SVC_BLOB_STORE"],
]);

/** @param what completes "the store … cannot" */
export function unanswered(name: string, what: string, cause: unknown): BlobError {
  const reason = reasonOf(cause);
  return new BlobError("unreachable", `${name} cannot ${what}: no answer (${reason})${wayToIt(reason)}`, { cause });
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  // Its code is a number.
  if (cause.name === "TimeoutError") return "none in time";
  return codeOf(cause) ?? cause.message;
}

const UNTRUSTED = /^(?:SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(?:GET|VERIFY))/;
const NOT_THERE =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|EPROTO|ERR_SSL)/;

function wayToIt(reason: string): string {
  if (UNTRUSTED.test(reason))
    return "; this machine does not trust its certificate: NODE_EXTRA_CA_CERTS names a file with its authority";
  return NOT_THERE.test(reason) ? "; does it run, and is SVC_BLOB_STORE_URL its address?" : "";
}

export interface Listed {
  readonly key: string;
  readonly bytes: number;
}

export function readListing(xml: string): { readonly found: readonly Listed[]; readonly more: boolean } {
  const found = blocks(xml, "Contents").map((block) => ({
    key: unescaped(field(block, "Key") ?? ""),
    bytes: Number(field(block, "Size") ?? 0),
  }));
  return { found, more: field(xml, "IsTruncated") === "true" };
}

export interface UnfinishedUpload {
  readonly key: string;
  readonly uploadId: string;
  readonly begunUnixMs: number;
}

export function readUploads(xml: string): readonly UnfinishedUpload[] {
  return blocks(xml, "Upload").map((block) => ({
    key: unescaped(field(block, "Key") ?? ""),
    uploadId: unescaped(field(block, "UploadId") ?? ""),
    begunUnixMs: Date.parse(field(block, "Initiated") ?? ""),
  }));
}

/** The total in `Content-Range: bytes 0-9/100`. */
export function totalOf({ headers }: Pick<Answer, "headers">): number | undefined {
  const [, total] = /^bytes \d+-\d+\/(\d+)$/.exec(String(headers["content-range"] ?? "")) ?? [];
  return total === undefined ? undefined : Number(total);
}

export function field(xml: string, name: string): string | undefined {
  return new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
}

function blocks(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>(.*?)</${name}>`, "gs"))].map(([, inside = ""]) => inside);
}

const ESCAPES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function unescaped(text: string): string {
  return text.replaceAll(/&(amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});/g, (whole, name: string) => {
    if (!name.startsWith("#")) return ESCAPES[name] ?? whole;
    const point = name.startsWith("#x") ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
    return point <= 0x10_ff_ff ? String.fromCodePoint(point) : whole;
  });
}

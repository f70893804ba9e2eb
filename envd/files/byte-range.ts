/** Pure: reads the Range header and conditional headers. Times are whole seconds, as in HTTP. */

export interface Span {
  readonly from: number;
  /** Last byte, included. */
  readonly to: number;
}

/** `all`: send everything (no range, several ranges, or an unreadable header). `none`: no byte of the range exists. */
export type RangeChoice = Span | "all" | "none";

export function chooseRange(header: string | undefined, size: number): RangeChoice {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/.exec(header ?? "");
  const [first, last] = [match?.[1], match?.[2]];
  if (first === undefined || last === undefined || (first === "" && last === "")) return "all";
  // An empty file has no byte of any range. Clients that send a range with every request must get it, too.
  if (size === 0) return "all";
  if (first === "") {
    const length = Math.min(Number(last), size);
    return length === 0 ? "none" : { from: size - length, to: size - 1 };
  }
  const from = Number(first);
  const to = last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== "" && Number(last) < from) return "all";
  return from >= size ? "none" : { from, to };
}

export interface Version {
  readonly etag: string;
  readonly modifiedMs: number;
}

export interface Conditions {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
  readonly ifModifiedSince?: string | undefined;
  readonly ifUnmodifiedSince?: string | undefined;
}

/** Evaluates the conditional headers of a GET, in the order of RFC 9110 §13.2.2. */
export function checkConditions(conditions: Conditions, version: Version): "send" | "not modified" | "failed" {
  const { ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince } = conditions;
  if (ifMatch !== undefined) {
    if (!listsTag(ifMatch, version.etag)) return "failed";
  } else if (ifUnmodifiedSince !== undefined && isLater(version.modifiedMs, ifUnmodifiedSince)) return "failed";
  if (ifNoneMatch !== undefined) return listsTag(ifNoneMatch, version.etag) ? "not modified" : "send";
  if (ifModifiedSince !== undefined && isLater(version.modifiedMs, ifModifiedSince) === false) return "not modified";
  return "send";
}

/** The version of a file by its time and size. */
export function versionOf({ mtimeNs, mtimeMs, size }: FileTimes): Version {
  return { etag: `"${mtimeNs.toString(36)}-${size.toString(36)}"`, modifiedMs: Number(mtimeMs) };
}

interface FileTimes {
  readonly mtimeNs: bigint;
  readonly mtimeMs: bigint;
  readonly size: bigint;
}

/** Whether If-Match of an upload names this version. */
export function mayReplace(ifMatch: string, { etag }: Version): boolean {
  return listsTag(ifMatch, etag);
}

/** Whether If-Range (a tag or a date) still names this version. */
export function rangeApplies(ifRange: string | undefined, version: Version): boolean {
  if (ifRange === undefined) return true;
  if (ifRange.startsWith('"')) return ifRange === version.etag;
  const date = Date.parse(ifRange);
  return !Number.isNaN(date) && Math.floor(version.modifiedMs / 1_000) === Math.floor(date / 1_000);
}

function listsTag(header: string, etag: string): boolean {
  const tags = header.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes("*") || tags.includes(etag);
}

/** Undefined when the text is not a date. */
function isLater(modifiedMs: number, date: string): boolean | undefined {
  const ms = Date.parse(date);
  return Number.isNaN(ms) ? undefined : Math.floor(modifiedMs / 1_000) > Math.floor(ms / 1_000);
}

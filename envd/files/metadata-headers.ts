/** Pure: file metadata that comes with an upload as `X-Metadata-<key>` headers. */

import { AppError } from "../../shared/http/errors.ts";
import type { Attributes } from "../system/system.ts";

const HEADER = "x-metadata-";
const PREFIX_BYTES = "user.e2b.".length;
const LONGEST_KEY_BYTES = 246;
/** Most bytes of all keys, with their prefix, and all values. */
const MOST_BYTES = 4096;

/** @param rawHeaders names and values in turn, as received. @throws {AppError} bad_request */
export function metadataOf(rawHeaders: readonly string[]): Attributes {
  const metadata = new Map<string, string>();
  let size = 0;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? "";
    const value = rawHeaders[i + 1] ?? "";
    if (!name.startsWith(HEADER)) continue;
    const key = name.slice(HEADER.length);
    if (metadata.has(key)) continue;
    check(key, value);
    size += PREFIX_BYTES + key.length + value.length;
    metadata.set(key, value);
  }
  if (size > MOST_BYTES) throw new AppError("bad_request", `metadata is larger than ${MOST_BYTES} bytes`);
  return Object.fromEntries(metadata);
}

function check(key: string, value: string): void {
  if (key === "") throw new AppError("bad_request", "a metadata key is empty");
  if (key.length > LONGEST_KEY_BYTES)
    throw new AppError("bad_request", `metadata key '${key.slice(0, 40)}…' is longer than ${LONGEST_KEY_BYTES} bytes`);
  if (!/^[\x20-\x7e]*$/.test(value) || !/^[\x21-\x7e]+$/.test(key))
    throw new AppError("bad_request", `metadata '${key.slice(0, 40)}' is not printable US-ASCII`);
}

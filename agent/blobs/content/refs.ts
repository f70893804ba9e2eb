/**
 * References of blobs: `<id>.<period>`. The id is derived from the content; the period is the quarter of a day in which a
 * blob was written. Pure.
 *
 * The period is in the name because uploads and collectors of garbage share nothing else. An upload counts only on blobs
 * of this period and the one before; it writes every other blob anew, under a name of this period. A collector deletes only
 * blobs whose period is long over. So no collector deletes what an upload under way counts on, whatever the two do at
 * the same moment, and no store needs a conditional write or a clock of its own.
 */

import { BLOB_PERIOD_MS } from "../../../shared/agent-api/blobs/blob-refs.ts";
import { BlobError } from "./blob-error.ts";

/** How long an upload may take. The same on every node, because collectors rely on it. */
export const PERIOD_MS = BLOB_PERIOD_MS;
/**
 * The periods before its own whose blobs a collector keeps. An upload counts on blobs that are one period old when it begins;
 * it ends within a period, and its reference is recorded within another one, which also is room for clocks that differ.
 */
export const KEPT_PERIODS = 3;

const REF = /^([0-9a-f]{64})\.(\d{1,9})$/;
const FOLDER = "sha256/";

export function periodAt(unixMs: number): number {
  return Math.floor(unixMs / PERIOD_MS);
}

export function refOf(id: string, period: number): string {
  return `${id}.${period}`;
}

export function isRef(text: string): boolean {
  return REF.test(text);
}

/** @throws {BlobError} damaged for a text that is no reference */
export function parseRef(ref: string): { readonly id: string; readonly period: number } {
  const [, id, period] = REF.exec(ref) ?? [];
  if (id === undefined || period === undefined) throw new BlobError("damaged", `${ref} is no reference of a blob`);
  return { id, period: Number(period) };
}

/** Name of the blob in a store. */
export function keyOf(ref: string): string {
  return FOLDER + ref;
}

/** The prefix of all blobs in a store. */
export const ALL_BLOBS = FOLDER;

/** Undefined: the key is not that of a blob. */
export function refOfKey(key: string): string | undefined {
  const ref = key.startsWith(FOLDER) ? key.slice(FOLDER.length) : "";
  return isRef(ref) ? ref : undefined;
}

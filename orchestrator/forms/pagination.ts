/**
 * Pagination of lists that are short enough to be read whole, newest first. A token holds a position in the order, not
 * an item, so it stays valid when that item is deleted. Pure.
 */

import { AppError } from "../../shared/http/errors.ts";

/** Position of an item: by time, newest first, then by name. No two items of a list share both. */
export interface Place {
  /** Unix milliseconds. */
  readonly at: number;
  readonly name: string;
}

interface Paged<T> {
  readonly limit?: number;
  readonly nextToken?: string;
  readonly placeOf: (item: T) => Place;
}

/**
 * Returns at most `limit` items after the token's place, and sets the header when there are more.
 * @throws {AppError} bad_request for a damaged token
 */
export function page<T>(items: readonly T[], paged: Paged<T>, header: (name: string, value: string) => void): T[] {
  const { limit = 100, nextToken = "", placeOf } = paged;
  const from = nextToken === "" ? undefined : fromToken(nextToken);
  const left = items
    .map((item) => ({ item, place: placeOf(item) }))
    .filter(({ place }) => from === undefined || compare(from, place) < 0)
    .sort((a, b) => compare(a.place, b.place));
  const found = left.slice(0, limit);
  const last = found.at(-1);
  if (last !== undefined && left.length > limit) header("x-next-token", toToken(last.place));
  return found.map(({ item }) => item);
}

function compare(a: Place, b: Place): number {
  if (a.at !== b.at) return b.at - a.at;
  if (a.name === b.name) return 0;
  return a.name < b.name ? -1 : 1;
}

function toToken({ at, name }: Place): string {
  return Buffer.from(`${at}__${name}`).toString("base64url");
}

function fromToken(token: string): Place {
  const [, at, name] = /^(\d{1,16})__(.+)$/s.exec(Buffer.from(token, "base64url").toString("utf8")) ?? [];
  if (at === undefined || name === undefined) throw new AppError("bad_request", "Invalid next token");
  return { at: Number(at), name };
}

/** Cursors of the dashboard's lists: the order, and the place in it of the last item of a page. Pure. */

import { AppError } from "../../shared/http/errors.ts";
import { iso } from "../forms/time.ts";

/** Place of an item in an order: a time, and a name where times are equal. */
export interface Place {
  /** Unix milliseconds. */
  readonly at: number;
  readonly name: string;
}

interface Ordered<T> {
  /** The order's name, which its cursors begin with; absent: the list has one order. */
  readonly sort?: string;
  readonly cursor: string | undefined;
  readonly limit: number;
  readonly placeOf: (item: T) => Place;
  readonly compare: (a: Place, b: Place) => number;
}

export interface Page<T> {
  readonly items: T[];
  readonly nextCursor: string | null;
}

export const byTimeDescending = (a: Place, b: Place) => b.at - a.at || compared(b.name, a.name);
export const byTimeAscending = (a: Place, b: Place) => a.at - b.at || compared(a.name, b.name);
export const byNameAscending = (a: Place, b: Place) => compared(a.name, b.name);
export const byNameDescending = (a: Place, b: Place) => compared(b.name, a.name);

/** @throws {AppError} bad_request for a cursor that is damaged, or of another order */
export function pageOf<T>(items: readonly T[], { sort, cursor, limit, placeOf, compare }: Ordered<T>): Page<T> {
  const from = fromCursor(cursor, sort);
  const left = items
    .map((item) => ({ item, place: placeOf(item) }))
    .filter(({ place }) => from === undefined || compare(from, place) < 0)
    .sort((a, b) => compare(a.place, b.place));
  const last = left[limit - 1];
  return {
    items: left.slice(0, limit).map(({ item }) => item),
    nextCursor: last === undefined || left.length <= limit ? null : toCursor(last.place, sort),
  };
}

export function toCursor({ at, name }: Place, sort?: string): string {
  return [...(sort === undefined ? [] : [sort]), iso(at), name].join("|");
}

/** @throws {AppError} bad_request */
export function fromCursor(cursor: string | undefined, sort?: string): Place | undefined {
  if (cursor === undefined || cursor === "") return undefined;
  const parts = cursor.split("|");
  const [order, time = "", name = ""] = sort === undefined ? [undefined, ...parts] : parts;
  const at = Date.parse(time);
  const isWhole = parts.length === (sort === undefined ? 2 : 3) && name !== "" && !Number.isNaN(at);
  if (isWhole && order === sort) return { at, name };
  throw new AppError("bad_request", "query field 'cursor': it is no cursor of this list in this order");
}

function compared(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

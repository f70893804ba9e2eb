/** Pages of lists that are short enough to be read whole: the token names the last item shown. Pure. */

import { AppError } from "../shared/errors.ts";

interface Paged<T> {
  readonly limit?: number;
  readonly nextToken?: string;
  readonly idOf: (item: T) => string;
}

/** A page after the item the token names; the header only when there is another. */
export function page<T>(items: readonly T[], paged: Paged<T>, header: (name: string, value: string) => void): T[] {
  const { limit = 100, nextToken = "", idOf } = paged;
  const id = Buffer.from(nextToken, "base64url").toString("utf8");
  const before = nextToken === "" ? -1 : items.findIndex((item) => idOf(item) === id);
  if (nextToken !== "" && before < 0) throw new AppError("bad_request", "Invalid next token");
  const found = items.slice(before + 1, before + 1 + limit);
  const last = found.at(-1);
  if (last !== undefined && before + 1 + limit < items.length) {
    header("x-next-token", Buffer.from(idOf(last)).toString("base64url"));
  }
  return found;
}

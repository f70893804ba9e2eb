/** When something that is loaded again and again is loaded next. Pure. */

/** A request that is not answered for so long is left, and made again. */
const PATIENCE_MS = 30_000;

/**
 * False while a request is waited for: if each round made another one in its place, a slow platform would never answer in time.
 * @param begunAt of the request under way; undefined: there is none
 */
export function isDue(begunAt: number | undefined, now: number): boolean {
  return begunAt === undefined || now - begunAt >= PATIENCE_MS;
}

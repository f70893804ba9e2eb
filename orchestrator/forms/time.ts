/** How the API writes and reads a time. Pure. */

/** @param ms unix milliseconds */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/**
 * Unix milliseconds of a time that the contract's format has admitted.
 * @param text may be a leap second, which no `Date` can be: it is read as the second that follows
 */
export function instant(text: string): number {
  const before = text.replace(/^(.{16}):60/, "$1:59");
  return Date.parse(before) + (before === text ? 0 : 1_000);
}

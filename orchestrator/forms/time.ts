/** How the API writes a time. Pure. */

/** @param ms unix milliseconds */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

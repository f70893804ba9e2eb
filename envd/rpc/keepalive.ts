/** Pure: the interval of keepalives on an idle stream. */

/** Seconds; the public protocol's default. */
const DEFAULT_SECONDS = 90;
const LONGEST_SECONDS = 24 * 3600;

/** The `Keepalive-Ping-Interval` header (whole seconds) as milliseconds. An unreadable value counts as absent. */
export function keepaliveMs(header: string | null | undefined): number {
  const seconds = header !== null && header !== undefined && /^\d{1,9}$/.test(header) ? Number(header) : 0;
  return (seconds === 0 ? DEFAULT_SECONDS : Math.min(seconds, LONGEST_SECONDS)) * 1_000;
}

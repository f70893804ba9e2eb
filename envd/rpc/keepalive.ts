/** Pure: how often an idle stream must say that it lives. */

/** Seconds; what the public protocol does without the header. */
const DEFAULT_SECONDS = 90;
const LONGEST_SECONDS = 24 * 3600;

/** The `Keepalive-Ping-Interval` header, in whole seconds, as milliseconds. Nonsense counts as not said. */
export function keepaliveMs(header: string | null | undefined): number {
  const seconds = header !== null && header !== undefined && /^\d{1,9}$/.test(header) ? Number(header) : 0;
  return (seconds === 0 ? DEFAULT_SECONDS : Math.min(seconds, LONGEST_SECONDS)) * 1_000;
}

/** Which headers a `transform` rule may set. Pure. */

/**
 * Not those that say where a message begins and ends, where it goes, or how the connection is used: they are decided hop
 * by hop, and a rule that set one could make two requests of one, or send a secret to another name.
 */
const UNSETTABLE: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Any spelling of the name. */
export function canBeSet(name: string): boolean {
  return TOKEN.test(name) && !UNSETTABLE.has(name.toLowerCase());
}

/** What one line of a header can hold (RFC 9110 §5.5), without white space at either end, which does not arrive. */
export function isHeaderValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value) && value === value.trim();
}

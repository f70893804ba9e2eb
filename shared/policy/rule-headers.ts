/** Which headers a `transform` rule may set. Pure. */

/**
 * Not those that frame, route or manage a message: they are decided hop by hop, and a rule that set one could split a
 * request in two, or send a secret to another host.
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

/** `name` in any case. */
export function canBeSet(name: string): boolean {
  return TOKEN.test(name) && !UNSETTABLE.has(name.toLowerCase());
}

/** What one header line can hold (RFC 9110 §5.5), without white space at either end, which would be lost. */
export function isHeaderValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value) && value === value.trim();
}

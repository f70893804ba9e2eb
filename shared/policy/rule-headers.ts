/** Which headers a `transform` rule may set. Pure. */

/**
 * Headers that frame, route or manage a message cannot be set: each hop decides them, and a rule that set one could split
 * a request in two, or send a secret to another host.
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

/** Whether a header line can hold the text as a part (RFC 9110 §5.5). */
export function isHeaderText(text: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(text);
}

/** Whether one header line can hold the text; white space at either end would be lost. */
export function isHeaderValue(value: string): boolean {
  return isHeaderText(value) && value === value.trim();
}

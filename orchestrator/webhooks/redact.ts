/** Text for the delivery log: bounded, printable, without secrets. Pure. */

const MAX_CHARACTERS = 2_048;
const HIDDEN = "[redacted]";

/** Values of fields and headers whose names speak of credentials, keys of this platform, and bearer tokens. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [
    /("[^"\\]{0,64}(?:secret|token|passw|api_?-?key|authorization|cookie|credential)[^"\\]{0,64}"\s*:\s*)"(?:[^"\\]|\\.)*"?/gi,
    `$1"${HIDDEN}"`,
  ],
  [/\b((?:set-)?cookie|authorization|x-api-key)(\s*[:=]\s*)[^\r\n]+/gi, `$1$2${HIDDEN}`],
  [/\bbearer\s+[\w.~+/=-]+/gi, `Bearer ${HIDDEN}`],
  [/\b(?:svc|e2b)_[0-9a-f]{16,}\b/gi, HIDDEN],
  [/\bwhsec_[\w+/=]+/gi, HIDDEN],
];

/** @param secret of the webhook: a receiver may send it back */
export function redacted(text: string, secret: string): string {
  const known = secret.length < 4 ? text : text.replaceAll(secret, HIDDEN);
  const hidden = SECRETS.reduce((rest, [pattern, replacement]) => rest.replaceAll(pattern, replacement), known);
  const printable = hidden.replaceAll(/[^\P{Cc}\n\t]/gu, "\u{FFFD}");
  return printable.length <= MAX_CHARACTERS ? printable : `${printable.slice(0, MAX_CHARACTERS - 1)}…`;
}

/**
 * Placeholders in header values of rules: `${e2b.secrets.NAME}` and `${e2b.identity.tokens.NAME}`, or `svc` for `e2b`.
 * The API, which accepts rules, and the egress process, which fills in values, both use this parser, so that an accepted
 * value neither fails later nor reaches a destination unfilled. Pure.
 */

export interface Placeholder {
  /** The placeholder as the value has it. */
  readonly text: string;
  /** The requested name, spelled with `e2b` and without braces; undefined for a malformed placeholder. */
  readonly asks: string | undefined;
}

/** Text that begins like a placeholder must be a valid one, or the value is refused. */
const OURS = /\$\{\s*(?:e2b|svc)\b[^}]*(?:\}|$)/gi;
// A token's name may have any characters except braces and control characters.
const WELL_FORMED = /^\$\{(?:e2b|svc)\.(secrets\.[a-zA-Z0-9_-]{1,128}|identity\.tokens\.[^{}\p{Cc}]{1,128})\}$/u;

/** All placeholders of the value in their order, with repetitions. */
export function placeholdersOf(value: string): readonly Placeholder[] {
  return [...value.matchAll(OURS)].map(([text]) => {
    const what = WELL_FORMED.exec(text)?.[1];
    return { text, asks: what === undefined ? undefined : `e2b.${what}` };
  });
}

/** @param values one for each of `placeholdersOf`; inserted unchanged, also text that looks like a placeholder */
export function fillPlaceholders(value: string, values: readonly string[]): string {
  const next = values.values();
  return value.replace(OURS, () => next.next().value ?? "");
}

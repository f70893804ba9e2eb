/**
 * Placeholders in header values of rules: `${e2b.secrets.NAME}` and `${e2b.identity.tokens.NAME}`, or `svc` for `e2b`. Where a rule is taken and where values are put in is decided here what one is, so that
 * nothing is accepted that later fails, or that reaches a destination as it stands. Pure.
 */

export interface Placeholder {
  /** As it stands in the value. */
  readonly text: string;
  /** What it asks for, in the spelling with `e2b` and without braces; undefined when it looks like one and is none. */
  readonly asks: string | undefined;
}

/** Text that begins like a placeholder must be a valid one, or the value is refused. */
const OURS = /\$\{\s*(?:e2b|svc)\b[^}]*(?:\}|$)/gi;
// Names of tokens are free but for braces and control characters.
const WELL_FORMED = /^\$\{(?:e2b|svc)\.(secrets\.[a-zA-Z0-9_-]{1,128}|identity\.tokens\.[^{}\p{Cc}]{1,128})\}$/u;

/** In the order in which they stand there, each as often as it does. */
export function placeholdersOf(value: string): readonly Placeholder[] {
  return [...value.matchAll(OURS)].map(([text]) => {
    const what = WELL_FORMED.exec(text)?.[1];
    return { text, asks: what === undefined ? undefined : `e2b.${what}` };
  });
}

/** @param values for `placeholdersOf` one after the other; put in as they are: what looks like a placeholder in one stays */
export function fillPlaceholders(value: string, values: readonly string[]): string {
  const next = values.values();
  return value.replace(OURS, () => next.next().value ?? "");
}

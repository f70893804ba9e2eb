/**
 * Placeholders in header values of rules: `${e2b.secrets.NAME}` and `${e2b.identity.tokens.NAME}`, or `svc` for `e2b`
 * (wire-contract.md §1.2, §5.4). They are stored and sent on as they are; only the node's egress process puts values in their place. Pure.
 */

const SECRET = /^(?:e2b|svc)\.secrets\.([a-zA-Z0-9_-]{1,128})$/;
// Names of tokens are free but for braces and control characters.
const TOKEN = /^(?:e2b|svc)\.identity\.tokens\.([^{}\p{Cc}]{1,128})$/u;

/** What stands between the braces of each, in the spelling with `e2b`; undefined when something looks like a placeholder and is none. */
export function readPlaceholders(value: string): readonly string[] | undefined {
  const found: string[] = [];
  for (const [start] of value.matchAll(/\$\{\s*(e2b|svc)\b[^}]*\}?/gi)) {
    const inner = start.slice(2, -1);
    if (!start.endsWith("}") || !(SECRET.test(inner) || TOKEN.test(inner))) return undefined;
    found.push(inner.replace(/^svc/, "e2b"));
  }
  return found;
}

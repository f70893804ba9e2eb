/** The placeholders in network rules, by what they ask for. Pure. */

import type { NetworkOptions } from "../../shared/api/network.ts";
import { placeholdersOf } from "../../shared/policy/placeholders.ts";

type Rules = NonNullable<NetworkOptions["rules"]>;

/** What a placeholder asks for. Secrets have their name in lower case, as the store has it; names of tokens are exact. */
export interface Wanted {
  readonly kind: "secret" | "token";
  readonly name: string;
}

interface RulePlaceholder extends Wanted {
  /** The key of the rules. */
  readonly host: string;
  readonly text: string;
}

const SECRETS = "e2b.secrets.";
const TOKENS = "e2b.identity.tokens.";

/** @param asks as in shared/policy/placeholders.ts; undefined for any other text */
export function readAsks(asks: string): Wanted | undefined {
  const [only, ...others] = placeholdersOf(`\${${asks}}`);
  if (only?.asks !== asks || others.length > 0) return undefined;
  if (asks.startsWith(SECRETS)) return { kind: "secret", name: asks.slice(SECRETS.length).toLowerCase() };
  return asks.startsWith(TOKENS) ? { kind: "token", name: asks.slice(TOKENS.length) } : undefined;
}

/** The well-formed placeholders of all header values, with repetitions. */
export function placeholdersOfRules(rules: Rules): readonly RulePlaceholder[] {
  return Object.entries(rules).flatMap(([host, list]) =>
    list
      .flatMap(({ transform }) => Object.values(transform?.headers ?? {}))
      .flatMap(placeholdersOf)
      .flatMap(({ text, asks }) => {
        const wanted = asks === undefined ? undefined : readAsks(asks);
        return wanted === undefined ? [] : [{ host, text, ...wanted }];
      }),
  );
}

/** Whether a header value asks for it. */
export function rulesWant(rules: Rules, { kind, name }: Wanted): boolean {
  return placeholdersOfRules(rules).some((each) => each.kind === kind && each.name === name);
}

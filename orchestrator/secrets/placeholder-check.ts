/** Refuses network rules whose placeholders name a secret or an identity token that the sandbox cannot have. */

import type { NetworkOptions } from "../../shared/api/network.ts";
import { placeholdersOfRules } from "../network-policy/placeholders.ts";
import { quoted, refuse } from "../network-policy/refuse.ts";
import type { SecretStore } from "../store/secrets/secrets.ts";

export interface PlaceholderCheck {
  /**
   * @param tokens names of the sandbox's identity tokens
   * @throws {AppError} bad_request that names the first unknown name
   */
  check(projectId: string, rules: NetworkOptions["rules"], tokens: ReadonlySet<string>): Promise<void>;
}

export function createPlaceholderCheck(store: Pick<SecretStore, "existing">): PlaceholderCheck {
  return {
    async check(projectId, rules, tokens) {
      const placeholders = placeholdersOfRules(rules ?? {});
      const names = new Set(placeholders.flatMap(({ kind, name }) => (kind === "secret" ? [name] : [])));
      const secrets = names.size === 0 ? new Set<string>() : await store.existing(projectId, [...names]);
      for (const { host, text, kind, name } of placeholders) {
        const known = kind === "secret" ? secrets : tokens;
        if (known.has(name)) continue;
        const where = kind === "secret" ? "the project has no secret" : "'iam.tokens' has no token";
        refuse(`rules of ${quoted(host)} have the placeholder ${text}, but ${where} ${quoted(name)}`);
      }
    },
  };
}

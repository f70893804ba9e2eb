/** Handlers of the discovery document, the key set, and the operators' routes on signing keys. */

import type { discoveryApi, IdentityKeys, identityAdminApi } from "../../shared/api/identity/identity.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { iso } from "../forms/time.ts";
import type { SigningKeys } from "./keys.ts";
import type { ScheduledKey } from "./schedule.ts";

export interface DiscoveryDeps {
  readonly keys: SigningKeys;
  readonly issuer: () => string;
  /** Time for which a key is published before it signs, ms. */
  readonly aheadMs: number;
}

/** Longest time for which verifiers may keep the documents; a new key is published for longer before it signs. */
const MAX_AGE_S = 300;

/** All claims of a token that a verifier may rely on (docs/using.md, Workload identity). */
const CLAIMS = "iss sub aud iat nbf exp jti project_id template_id sandbox_id execution_id".split(" ");

export function createDiscoveryHandlers({ keys, issuer, aheadMs }: DiscoveryDeps): Handlers<typeof discoveryApi> {
  const cacheControl = `public, max-age=${Math.min(MAX_AGE_S, Math.floor(aheadMs / 1000))}`;
  return {
    async openidConfiguration(_input, { header }) {
      header("cache-control", cacheControl);
      const algorithms = (await keys.list()).map(({ algorithm }) => algorithm);
      return {
        issuer: issuer(),
        jwks_uri: `${issuer()}/.well-known/jwks.json`,
        response_types_supported: ["id_token"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: [...new Set(algorithms)],
        scopes_supported: ["openid"],
        claims_supported: CLAIMS,
      };
    },
    async jwks(_input, { header }) {
      header("cache-control", cacheControl);
      const published = await keys.list();
      return {
        keys: published.map(({ kid, algorithm, publicKey }) => ({ ...publicKey, kid, alg: algorithm, use: "sig" })),
      };
    },
  };
}

export function createIdentityHandlers(keys: Pick<SigningKeys, "list" | "rotate" | "revoke">) {
  const handlers: Handlers<typeof identityAdminApi> = {
    identityKeys: async () => toShown(await keys.list()),
    rotateIdentityKey: async ({ body: { revoke } }) =>
      toShown(revoke === undefined ? await keys.rotate() : await keys.revoke(revoke)),
  };
  return handlers;
}

function toShown(keys: readonly ScheduledKey[]): IdentityKeys {
  return {
    keys: keys.map(({ kid, algorithm, state, createdAt, signsFrom, publishedUntil }) => ({
      kid,
      algorithm,
      state,
      createdAt: iso(createdAt),
      signsFrom: iso(signsFrom),
      publishedUntil: publishedUntil === undefined ? null : iso(publishedUntil),
    })),
  };
}

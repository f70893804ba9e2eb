/** Talks to the provider of log-ins by OpenID Connect: the only importer of its client library. */

import * as client from "openid-client";
import { isLoopback } from "../../../shared/http/plain-addresses.ts";
import type { Log } from "../../../shared/program/log.ts";

export interface ProviderSettings {
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined: a public client, which PKCE alone protects. */
  readonly clientSecret: string | undefined;
  readonly scope: string;
}

/** What only the browser that began a log-in knows, until it comes back. */
export interface Pending {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export interface Provider {
  /** Where the browser logs in. */
  authorizationUrl(pending: Pending, redirectUri: string): Promise<URL>;
  /**
   * The claims of whoever has logged in, of the ID token and of the provider's answer about its user.
   * @param returned the whole address at which the browser has come back
   * @throws when state, nonce, code, issuer or signature are not those of this log-in
   */
  claims(pending: Pending, returned: URL): Promise<Readonly<Record<string, unknown>> & { readonly sub: string }>;
}

const LIMIT_S = 10;
/** Time after which the provider's description is read again. */
const KEEP_MS = 3_600_000;
/** Time between two readings of which the first has failed, while there is an earlier description. */
const RETRY_MS = 60_000;

interface ProviderDeps {
  readonly now: () => number;
  readonly log: Pick<Log, "warn">;
}

export function createProvider(settings: ProviderSettings, { now, log }: ProviderDeps): Provider {
  const issuer = new URL(settings.issuer);
  /** The last description that could be read, which stays when a later reading fails. */
  let known: client.Configuration | undefined;
  /** Log-ins at the same moment share it. */
  let reading: Promise<client.Configuration> | undefined;
  let readAgainAt = 0;

  async function configuration(): Promise<client.Configuration> {
    if (known !== undefined && now() < readAgainAt) return known;
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  async function read(): Promise<client.Configuration> {
    try {
      known = await discover();
      readAgainAt = now() + KEEP_MS;
      return known;
    } catch (error) {
      // Without any description the next log-in tries again.
      if (known === undefined) throw error;
      log.warn(
        { err: error },
        "could not read the description of the provider of log-ins again: the earlier one stays",
      );
      readAgainAt = now() + RETRY_MS;
      return known;
    }
  }

  async function discover(): Promise<client.Configuration> {
    const { clientId, clientSecret } = settings;
    // Plain HTTP only on this machine: anybody between could answer for the provider.
    const execute = issuer.protocol === "http:" && isLoopback(issuer.hostname) ? [client.allowInsecureRequests] : [];
    return client.discovery(issuer, clientId, undefined, authentication(clientSecret), { execute, timeout: LIMIT_S });
  }

  return {
    async authorizationUrl({ state, nonce, verifier }, redirectUri) {
      return client.buildAuthorizationUrl(await configuration(), {
        redirect_uri: redirectUri,
        scope: settings.scope,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        state,
        nonce,
      });
    },

    async claims({ state, nonce, verifier }, returned) {
      const found = await configuration();
      const tokens = await client.authorizationCodeGrant(found, returned, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new Error("the provider sent no ID token");
      if (found.serverMetadata().userinfo_endpoint === undefined) return claims;
      // The subject must be the same; what the ID token says is signed, so it wins.
      return { ...(await client.fetchUserInfo(found, tokens.access_token, claims.sub)), ...claims };
    },
  };
}

/** Providers take a secret in one of two ways, and say in which. */
function authentication(secret: string | undefined): client.ClientAuth {
  if (secret === undefined) return client.None();
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)];
  return (server, ...rest) => {
    const { token_endpoint_auth_methods_supported: ways = ["client_secret_basic"] } = server;
    (ways.includes("client_secret_basic") ? basic : post)(server, ...rest);
  };
}

export const newPending = (): Pending => ({
  state: client.randomState(),
  nonce: client.randomNonce(),
  verifier: client.randomPKCECodeVerifier(),
});

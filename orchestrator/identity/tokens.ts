/** Issues workload identity tokens: which sandbox asks, to whom it may show that, for minutes. */

import { newUuid } from "../../shared/ids.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { SigningKeys } from "./keys.ts";
import { spiffeId } from "./subject.ts";

interface IdentityToken {
  readonly value: string;
  /** Unix ms; the token's `exp`. */
  readonly usableUntil: number;
}

type Holder = Pick<SandboxRecord, "id" | "projectId" | "templateId" | "executionId" | "iam">;

export interface TokenIssuerDeps {
  readonly keys: SigningKeys;
  /** The claim `iss`. */
  readonly issuer: () => string;
  readonly trustDomain: () => string;
  readonly tokenMs: number;
  readonly now: () => number;
}

/** Clocks of verifiers may be behind by this time. */
const CLOCK_SKEW_S = 30;

export interface TokenIssuer {
  /** Names of the tokens that the sandbox has. */
  names(sandbox: Pick<SandboxRecord, "iam">): ReadonlySet<string>;
  /** A new token. Undefined: the sandbox has none of that name. */
  tokenFor(sandbox: Holder, name: string): Promise<IdentityToken | undefined>;
}

export function createTokenIssuer(deps: TokenIssuerDeps): TokenIssuer {
  async function tokenFor(sandbox: Holder, name: string): Promise<IdentityToken | undefined> {
    const tokens = sandbox.iam?.tokens ?? {};
    const asked = Object.hasOwn(tokens, name) ? tokens[name] : undefined;
    if (asked === undefined) return undefined;
    const at = deps.now();
    const issuedAt = Math.floor(at / 1000);
    const expiresAt = issuedAt + Math.floor(deps.tokenMs / 1000);
    const { projectId, templateId, executionId, id } = sandbox;
    const claims = {
      iss: deps.issuer(),
      sub: spiffeId(deps.trustDomain(), ["project", projectId, "template", templateId, "sandbox", id]),
      aud: asked.audience,
      iat: issuedAt,
      nbf: issuedAt - CLOCK_SKEW_S,
      exp: expiresAt,
      jti: newUuid(),
      project_id: projectId,
      template_id: templateId,
      sandbox_id: id,
      execution_id: executionId,
    };
    return { value: await deps.keys.sign(claims, at), usableUntil: expiresAt * 1000 };
  }
  return { names: ({ iam }) => new Set(Object.keys(iam?.tokens ?? {})), tokenFor };
}

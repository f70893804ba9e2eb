/** Settings of workload identity tokens, which the orchestrator issues. */

import { Type } from "typebox";

export const identitySettings = {
  identityIssuer: Type.Optional(
    Type.String({
      pattern: "^https?://[^/?#\\s]+(/[^?#\\s]*[^/?#\\s])?$",
      maxLength: 512,
      description:
        "Issuer of workload identity tokens: the URL under which verifiers reach /.well-known. Default: SVC_PUBLIC_URL, or the API's own address",
    }),
  ),
  identityTrustDomain: Type.Optional(
    Type.String({
      pattern: "^[a-z0-9._-]{1,255}$",
      description: "SPIFFE trust domain of sandboxes. Default: the host of the issuer",
    }),
  ),
  identityAlgorithm: Type.Enum(["ES256", "EdDSA"], {
    default: "ES256",
    description: "Algorithm of new signing keys",
  }),
  identityTokenMinutes: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 60,
    description: "Lifetime of workload identity tokens, minutes",
  }),
  identityPublishAheadMinutes: Type.Integer({
    default: 60,
    minimum: 0,
    maximum: 10_080,
    description: "Time for which a new signing key is published before it signs, minutes",
  }),
  identityRotateDays: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 3650,
    description: "Age at which a signing key gets a successor, days; 0: only when an operator asks",
  }),
};

/** Workload identity: the documents with which anyone verifies tokens, and the operators' routes on signing keys. */

import { type Static, Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { nullable, Timestamp } from "../common.ts";

const open = { tag: "Identity", access: "none", method: "GET" } as const;

const Algorithm = Type.Enum(["ES256", "EdDSA"]);

const Configuration = Type.Object(
  {
    issuer: Type.String({ examples: ["https://api.example.com"] }),
    jwks_uri: Type.String({ examples: ["https://api.example.com/.well-known/jwks.json"] }),
    response_types_supported: Type.Array(Type.String()),
    subject_types_supported: Type.Array(Type.String()),
    id_token_signing_alg_values_supported: Type.Array(Type.String()),
    scopes_supported: Type.Array(Type.String()),
    claims_supported: Type.Array(Type.String()),
  },
  { description: "OpenID Connect Discovery 1.0: for verification alone, so without endpoints for logins" },
);

const KeySet = Type.Object({
  keys: Type.Array(
    Type.Object({
      kty: Type.Optional(Type.String()),
      crv: Type.Optional(Type.String()),
      x: Type.Optional(Type.String()),
      y: Type.Optional(Type.String()),
      kid: Type.String({ description: "Thumbprint of the key, RFC 7638" }),
      alg: Algorithm,
      use: Type.String({ examples: ["sig"] }),
    }),
  ),
});

export const discoveryApi = contract({
  openidConfiguration: {
    ...open,
    path: "/.well-known/openid-configuration",
    summary: "Metadata of the issuer of workload identity tokens",
    status: 200,
    reply: Configuration,
  },
  jwks: {
    ...open,
    path: "/.well-known/jwks.json",
    summary: "Public keys that verify workload identity tokens",
    status: 200,
    reply: KeySet,
  },
});

const IdentityKeys = Type.Object({
  keys: Type.Array(
    Type.Object({
      kid: Type.String(),
      algorithm: Algorithm,
      state: Type.Enum(["next", "signing", "retired"]),
      createdAt: Timestamp,
      signsFrom: Timestamp,
      publishedUntil: nullable(Timestamp),
    }),
    { description: "In the order in which they were made" },
  ),
});
export type IdentityKeys = Static<typeof IdentityKeys>;

const admin = { tag: "Admin", access: "admin" } as const;

export const identityAdminApi = contract({
  identityKeys: {
    ...admin,
    method: "GET",
    path: "/admin/identity/keys",
    summary: "List the keys of workload identity tokens",
    status: 200,
    reply: IdentityKeys,
    errors: [401],
  },
  rotateIdentityKey: {
    ...admin,
    method: "POST",
    path: "/admin/identity/rotate",
    summary:
      "Publish a new key for workload identity tokens, which signs later; repeating it before that changes nothing",
    body: Type.Object({
      revoke: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 128,
          description: "`kid` of a key to remove at once instead: its tokens become invalid, its successor signs now",
        }),
      ),
    }),
    optionalBody: true,
    status: 200,
    reply: IdentityKeys,
    errors: [400, 401],
  },
});

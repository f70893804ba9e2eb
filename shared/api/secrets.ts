/** Secrets on the public API. No route reads a value back. */

import { type Static, Type } from "typebox";
import { contract } from "../http/contract.ts";
import { map, messages, nullable, page, Timestamp } from "./common.ts";

// Limits in bytes are the handlers': a schema counts characters.
const SecretMetadata = map(Type.String({ maxLength: 1024 }), {
  names: Type.String({ minLength: 1, maxLength: 128 }),
  maxProperties: 32,
  description: "Free key–value pairs in clear: at most 128 bytes a key, 1024 a value, 8192 in all",
});

export const Secret = Type.Object({
  secretID: Type.String({ description: "Begins with sec_" }),
  name: Type.String({ description: "In lower case" }),
  currentVersion: Type.Integer({
    description: "1 for a new secret; each new value adds one, and replaces the value before",
  }),
  metadata: SecretMetadata,
  createdAt: Timestamp,
  updatedAt: Timestamp,
  useCount: Type.Integer({ description: "Requests of sandboxes that the platform has put a value into" }),
  lastUsedAt: nullable(Timestamp),
});
export type Secret = Static<typeof Secret>;

const value = Type.String({
  minLength: 1,
  maxLength: 65_536,
  description: "Write-only: 1 to 65536 bytes of UTF-8",
  examples: ["the-value"],
});
const name = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: "^(?![sS][eE][cC]_)[a-zA-Z0-9_-]+$",
  description: "Unique in the project, in any case",
  ...messages({ pattern: "body field 'name' must be of a-z, A-Z, 0-9, _ and -, and must not begin with sec_" }),
});
/** `noStore` and the limit of the body hold for refusals too. */
const common = { tag: "Secrets", access: "project", noStore: true } as const;
const written = { ...common, maxBodyBytes: 512 * 1024 } as const;
const bySecret = Type.Object({
  secretID: Type.String({ minLength: 1, maxLength: 512, description: "Id or name" }),
});

export const secretApi = contract({
  listSecrets: {
    ...common,
    method: "GET",
    path: "/secrets",
    summary: "List secrets, without their values, newest first",
    query: Type.Object(page),
    status: 200,
    reply: Type.Array(Secret),
    errors: [400, 401, 403],
  },
  createSecret: {
    ...written,
    method: "POST",
    path: "/secrets",
    summary: "Create a secret",
    body: Type.Object({ name, value, metadata: Type.Optional(SecretMetadata) }),
    status: 201,
    reply: Secret,
    errors: [400, 401, 403, 409, 413, 503],
  },
  getSecret: {
    ...common,
    method: "GET",
    path: "/secrets/{secretID}",
    summary: "Read a secret, without its value",
    params: bySecret,
    status: 200,
    reply: Secret,
    errors: [401, 403, 404],
  },
  updateSecret: {
    ...written,
    method: "POST",
    path: "/secrets/{secretID}",
    summary: "Give a secret a new value; requests of running sandboxes use it within seconds",
    params: bySecret,
    body: Type.Object({
      value,
      metadata: Type.Optional(SecretMetadata),
    }),
    status: 200,
    reply: Secret,
    errors: [400, 401, 403, 404, 409, 413, 503],
  },
  deleteSecret: {
    ...common,
    method: "DELETE",
    path: "/secrets/{secretID}",
    summary: "Delete a secret; requests that need it fail within seconds",
    params: bySecret,
    status: 204,
    errors: [401, 403, 404],
  },
});

const KeyUse = Type.Object({
  keyID: Type.String({ description: "Of a key-encryption key: file:ID or command:ID" }),
  secrets: Type.Integer({ description: "Secrets that cannot be opened without it" }),
});

/** For operators. */
export const secretKeyApi = contract({
  rewrapSecrets: {
    tag: "Admin",
    access: "admin",
    method: "POST",
    path: "/admin/secrets/rewrap",
    summary:
      "Encrypt the data keys of all secrets with the current key-encryption key; repeat until `done`, then older keys may go",
    body: Type.Object({
      wrappedBefore: Type.Optional(
        Type.String({
          format: "date-time",
          description:
            "Also those that the current key encrypted before this time, for a key that changes under one id",
        }),
      ),
    }),
    optionalBody: true,
    status: 200,
    reply: Type.Object({
      currentKeyID: Type.String(),
      rewrapped: Type.Integer(),
      failed: Type.Integer({ description: "Data keys that could not be opened; the log has the reasons" }),
      stillNeeded: Type.Array(KeyUse, { description: "Keys besides the current one that must stay" }),
      done: Type.Boolean({ description: "Only the current key is needed" }),
    }),
    errors: [400, 401, 403, 503],
  },
});

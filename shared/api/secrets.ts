/** Secrets on the public API. No route reads a value back. */

import { Type } from "typebox";
import { notImplemented } from "../http/contract.ts";
import { map, page, Timestamp } from "./common.ts";

const SecretMetadata = map(Type.String({ maxLength: 1024 }), {
  names: Type.String({ minLength: 1, maxLength: 128 }),
  maxProperties: 32,
});

const Secret = Type.Object({
  secretID: Type.String(),
  name: Type.String(),
  currentVersion: Type.Integer(),
  metadata: SecretMetadata,
  createdAt: Timestamp,
  updatedAt: Timestamp,
});

const value = Type.String({ minLength: 1, maxLength: 65_536 });
const common = { tag: "Secrets", access: "project" } as const;
const bySecret = Type.Object({
  secretID: Type.String({ minLength: 1, maxLength: 128, pattern: "^[a-zA-Z0-9_-]+$", description: "Id or name" }),
});

export const secretApi = notImplemented({
  listSecrets: {
    ...common,
    method: "GET",
    path: "/secrets",
    summary: "List secrets, without their values",
    query: Type.Object(page),
    status: 200,
    reply: Type.Array(Secret),
    errors: [400, 401, 403],
  },
  createSecret: {
    ...common,
    method: "POST",
    path: "/secrets",
    summary: "Create a secret",
    body: Type.Object({
      name: Type.String({ minLength: 1, maxLength: 128, pattern: "^(?!sec_)[a-zA-Z0-9_-]+$" }),
      value,
      metadata: Type.Optional(SecretMetadata),
    }),
    status: 201,
    reply: Secret,
    errors: [400, 401, 403, 409],
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
    ...common,
    method: "POST",
    path: "/secrets/{secretID}",
    summary: "Give a secret a new value",
    params: bySecret,
    body: Type.Object({ value, metadata: Type.Optional(SecretMetadata) }),
    status: 200,
    reply: Secret,
    errors: [400, 401, 403, 404],
  },
  deleteSecret: {
    ...common,
    method: "DELETE",
    path: "/secrets/{secretID}",
    summary: "Delete a secret",
    params: bySecret,
    status: 204,
    errors: [401, 403, 404],
  },
});

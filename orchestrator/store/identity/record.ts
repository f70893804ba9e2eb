/** The table of the keys that sign workload identity tokens. */

import { json, number, type RecordOf, type RowOf, table, text } from "../codec.ts";

export const identityKeyTable = table({
  /** From 1: the order in which the keys were made, and what keeps two callers from making the same successor. */
  sequence: number("sequence"),
  /** Thumbprint of the public key (RFC 7638). */
  kid: text("kid"),
  algorithm: text("algorithm").as<"ES256" | "EdDSA">(),
  /** JSON Web Key. */
  publicKey: json("public_key").as<Readonly<Record<string, unknown>>>(),
  /** JSON Web Key, sealed; undefined once the key signs no more. */
  sealedPrivateKey: text("private_key").optional(),
  createdAt: number("created_at"),
  /** The key signs from this time until its successor's. */
  signsFrom: number("signs_from"),
  /** The longest lifetime of tokens while it could sign, ms. */
  tokenMs: number("token_ms"),
});

export type IdentityKey = RecordOf<typeof identityKeyTable>;
export type IdentityKeyRow = RowOf<typeof identityKeyTable>;

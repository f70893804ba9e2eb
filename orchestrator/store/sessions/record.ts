/** The table of the console's sessions and one-time links: hashes, never what a browser holds. */

import { number, type RecordOf, type RowOf, table, text } from "../codec.ts";

export const sessionTable = table({
  /** SHA-256 of the cookie or of the link's code. */
  hash: text("hash"),
  /** `link`: a code that makes one session of its key. */
  kind: text("kind").as<"key" | "admin" | "person" | "link">(),
  /** Undefined for an operator. The row goes with the key. */
  keyId: text("key_id").optional(),
  /** SHA-256 of cookie and admin token: shows that the token is still valid, and tells nobody the token. */
  adminDigest: text("admin_digest").optional(),
  /** Who has logged in by name, as `console/oidc` keeps it. */
  person: text("person").optional(),
  createdAt: number("created_at"),
  usedAt: number("used_at"),
  expiresAt: number("expires_at"),
});

export type SessionRecord = RecordOf<typeof sessionTable>;
export type SessionRow = RowOf<typeof sessionTable>;

/** The tables of the platform's authority, of join tokens, and of the keys of nodes and edges that joined. */

import { number, type RecordOf, type RowOf, table, text } from "../codec.ts";

/** What a machine becomes with a join token. */
export type MachineKind = "node" | "edge";

export const authorityTable = table({
  /** `platform` in force, `platform-next` the one that is to take its place. */
  id: text("id"),
  /** PEM. */
  certificate: text("certificate"),
  /** PEM, sealed. */
  sealedKey: text("private_key"),
  createdAt: number("created_at"),
  /** Of the next one, since it signs. */
  signsSince: number("signs_since").later(),
});

export const joinTokenTable = table(
  {
    id: text("id"),
    createdAt: number("created_at"),
    expiresAt: number("expires_at"),
    /** When a machine has joined with it. */
    usedAt: number("used_at").later(),
    nodeId: text("node_id").later(),
    edgeId: text("edge_id").later(),
    /** Absent in tokens of earlier versions, which make nodes. */
    kind: text("kind").as<MachineKind>().optional(),
    revokedAt: number("revoked_at").later(),
  },
  { hash: text("hash") },
);

/** A node that has joined. One that reports over loopback alone has no such row. */
export const memberTable = table({
  nodeId: text("node_id"),
  /** SHA-256 of the node's public key, which is what the node is. */
  keyDigest: text("key_digest"),
  joinTokenId: text("join_token_id"),
  joinedAt: number("joined_at"),
  /** Digests of the authorities that it trusts, as JSON, and of the one that has signed its certificate; as it said last. */
  trusts: text("trusts").later(),
  certifiedBy: text("certified_by").later(),
  askedAt: number("asked_at").later(),
});

/** An edge program that has joined. */
export const edgeTable = table({
  id: text("id"),
  /** SHA-256 of the edge's public key. */
  keyDigest: text("key_digest"),
  joinTokenId: text("join_token_id"),
  joinedAt: number("joined_at"),
  /** Digests of the authorities that it trusts, as JSON, and of the one that has signed its certificate; as it said last. */
  trusts: text("trusts").later(),
  certifiedBy: text("certified_by").later(),
  askedAt: number("asked_at").later(),
});

export type EdgeRecord = RecordOf<typeof edgeTable>;
export type JoinTokenRecord = RecordOf<typeof joinTokenTable>;
export type AuthorityRecord = RecordOf<typeof authorityTable>;

export interface MachineTables {
  readonly authorities: RowOf<typeof authorityTable>;
  readonly join_tokens: RowOf<typeof joinTokenTable>;
  readonly members: RowOf<typeof memberTable>;
  readonly edges: RowOf<typeof edgeTable>;
}

/** SQL on join tokens and on the keys of nodes and edges. A join is one transaction: the token is used with it or not at all. */

import { AppError } from "../../../shared/http/errors.ts";
import type { AuditStore } from "../audit/audit.ts";
import { addNodeEvent } from "../nodes/node-events.ts";
import type { Database, Session } from "../tables.ts";
import {
  type EdgeRecord,
  edgeTable,
  type JoinTokenRecord,
  joinTokenTable,
  type MachineKind,
  memberTable,
} from "./record.ts";

/** How long a token is listed after its end. */
const LISTED_MS = 30 * 86_400_000;

/** A machine that joins again trusts what it has found then, until it says what it trusts. */
const UNSAID = { trusts: null, certified_by: null, asked_at: null };

interface Claim {
  readonly tokenId: string;
  /** Of the secret. */
  readonly hash: string;
  readonly nodeId: string;
  readonly keyDigest: string;
}

export interface Join extends Claim {
  /** Whether it has proved to be the node of this name: it has that node's token in its settings, as the orchestrator's own machine. */
  readonly isProved: boolean;
}

interface NewToken {
  readonly id: string;
  readonly hash: string;
  readonly expiresAt: number;
  readonly kind: MachineKind;
}

export interface EdgeJoin extends Omit<Claim, "nodeId"> {
  readonly edgeId: string;
}

export type MachineStore = ReturnType<typeof machineStore>;

interface MachineStoreDeps {
  readonly now: () => number;
  readonly audit: Pick<AuditStore, "noteUnlessRequested">;
}

export function machineStore(db: Database, { now, audit }: MachineStoreDeps) {
  return {
    async addToken(token: NewToken) {
      const row = joinTokenTable.toRow({ ...token, createdAt: now() });
      await db.transaction().execute(async (session) => {
        await session
          .deleteFrom("join_tokens")
          .where("expires_at", "<", now() - LISTED_MS)
          // A node may come back with the token that it has joined with.
          .where("id", "not in", session.selectFrom("members").select("join_token_id"))
          .execute();
        await session.insertInto("join_tokens").values(row).execute();
      });
      return joinTokenTable.toRecord(row);
    },

    async listTokens(): Promise<JoinTokenRecord[]> {
      const rows = await db.selectFrom("join_tokens").selectAll().orderBy("created_at", "desc").orderBy("id").execute();
      return rows.map(joinTokenTable.toRecord);
    },

    /** False: there is no such token. One that was used stays so. */
    async revokeToken(id: string): Promise<boolean> {
      return db.transaction().execute(async (session) => {
        await session
          .updateTable("join_tokens")
          .set(joinTokenTable.toColumns({ revokedAt: now() }))
          .where("id", "=", id)
          .where("used_at", "is", null)
          .where("revoked_at", "is", null)
          .execute();
        return (await tokenOf(session, id)) !== undefined;
      });
    },

    /** @throws {AppError} forbidden: the token makes no machine a node now. It stays as it is. */
    async checkToken({ tokenId, hash }: Pick<Claim, "tokenId" | "hash">): Promise<void> {
      checkUsable(await tokenFor("node", db, { tokenId, hash }), now());
    },

    /**
     * Uses the token for the node. The node that has used it, with the same key, may repeat the call: it may not have got the answer.
     * A node that has proved that it is the one of its name gets a key, also in place of one that it has lost, for which the token that
     * it has used is enough. Its sandboxes stay, and its former key opens nothing from then on.
     * @throws {AppError} forbidden, conflict
     */
    async join({ tokenId, hash, nodeId, keyDigest, isProved }: Join): Promise<void> {
      await db.transaction().execute(async (session) => {
        const token = await tokenFor("node", session, { tokenId, hash });
        const member = await session.selectFrom("members").selectAll().where("node_id", "=", nodeId).executeTakeFirst();
        const isItsToken = token.nodeId === nodeId && member?.join_token_id === tokenId;
        const hasItsKey = member?.key_digest === keyDigest;
        if (isItsToken && hasItsKey) {
          await session.updateTable("members").set(UNSAID).where("node_id", "=", nodeId).execute();
          return;
        }
        const returns = isItsToken && isProved;
        if (!returns) checkUsable(token, now());
        const isTaken = !hasItsKey && !isProved && (member !== undefined || (await isKnown(session, nodeId)));
        if (isTaken) throw nodeTaken(nodeId);
        if (!returns) await take(session, tokenId, { usedAt: now(), nodeId });
        const row = memberTable.toRow({ nodeId, keyDigest, joinTokenId: tokenId, joinedAt: now() });
        const written = await session
          .insertInto("members")
          .values(row)
          .onConflict((conflict) =>
            conflict
              .column("node_id")
              .doUpdateSet({ key_digest: keyDigest, join_token_id: tokenId, joined_at: row.joined_at, ...UNSAID })
              .where("members.key_digest", isProved ? "is not" : "=", isProved ? null : keyDigest),
          )
          .returning("node_id")
          .executeTakeFirst();
        // Another machine has joined under the name at this moment.
        if (written === undefined) throw nodeTaken(nodeId);
        await addNodeEvent(session, { nodeId, kind: "joined", at: now() });
        await audit.noteUnlessRequested(session, {
          at: now(),
          action: "join",
          projectId: undefined,
          object: { kind: "node", id: nodeId },
          details: { joinTokenId: tokenId, keyDigest },
        });
      });
    },

    /**
     * As `join`, for an edge. An edge that has joined joins again with the same key.
     * @throws {AppError} forbidden, conflict
     */
    async joinEdge({ tokenId, hash, edgeId, keyDigest }: EdgeJoin): Promise<void> {
      await db.transaction().execute(async (session) => {
        const token = await tokenFor("edge", session, { tokenId, hash });
        const known = await session.selectFrom("edges").selectAll().where("id", "=", edgeId).executeTakeFirst();
        if (token.edgeId === edgeId && known?.join_token_id === tokenId && known.key_digest === keyDigest) {
          await session.updateTable("edges").set(UNSAID).where("id", "=", edgeId).execute();
          return;
        }
        checkUsable(token, now());
        if (known !== undefined && known.key_digest !== keyDigest) throw edgeTaken(edgeId);
        await take(session, tokenId, { usedAt: now(), edgeId });
        const row = edgeTable.toRow({ id: edgeId, keyDigest, joinTokenId: tokenId, joinedAt: now() });
        // A machine that joins under another name leaves its former one.
        await session.deleteFrom("edges").where("key_digest", "=", keyDigest).execute();
        const written = await session
          .insertInto("edges")
          .values(row)
          .onConflict((conflict) => conflict.doNothing())
          .returning("id")
          .executeTakeFirst();
        if (written === undefined) throw await edgeConflict(session, edgeId, keyDigest);
        await audit.noteUnlessRequested(session, {
          at: now(),
          action: "joinEdge",
          projectId: undefined,
          object: { kind: "edge", id: edgeId },
          details: { joinTokenId: tokenId, keyDigest },
        });
      });
    },

    /** The edge that joined with this key; undefined: none, or it was removed. */
    async edgeOf(keyDigest: string): Promise<string | undefined> {
      const row = await db.selectFrom("edges").select("id").where("key_digest", "=", keyDigest).executeTakeFirst();
      return row?.id;
    },

    async listEdges(): Promise<EdgeRecord[]> {
      return (await db.selectFrom("edges").selectAll().orderBy("id").execute()).map(edgeTable.toRecord);
    },

    /** False: there is no such edge. */
    async removeEdge(edgeId: string): Promise<boolean> {
      const gone = await db.deleteFrom("edges").where("id", "=", edgeId).returning("id").executeTakeFirst();
      return gone !== undefined;
    },

    /** The node has got a certificate that ends then. */
    async noteRenewal(nodeId: string, until: number): Promise<void> {
      await addNodeEvent(db, { nodeId, kind: "certificate_renewed", at: now(), detail: `until ${iso(until)}` });
    },

    /** Forgets the key of a node, so that none of its reports is taken and its name is free. */
    async removeMember(nodeId: string): Promise<void> {
      await db.deleteFrom("members").where("node_id", "=", nodeId).execute();
    },

    /** The digest of the key that the node joined with; undefined: it has not joined. */
    async keyOf(nodeId: string): Promise<string | undefined> {
      const row = await db.selectFrom("members").select("key_digest").where("node_id", "=", nodeId).executeTakeFirst();
      return row?.key_digest;
    },
  };
}

function nodeTaken(nodeId: string): AppError {
  return new AppError(
    "conflict",
    `node '${nodeId}' is on this platform with another key, so this machine cannot have its name: choose another SVC_NODE_ID, or remove that node first`,
  );
}

function edgeTaken(edgeId: string): AppError {
  return new AppError(
    "conflict",
    `edge '${edgeId}' is on this platform with another key, so this machine cannot have its name: choose another SVC_EDGE_ID, or remove that edge first (DELETE /admin/edges/${edgeId})`,
  );
}

/** Of a join that another one has overtaken at this moment: of another machine under the name, or of this machine. */
async function edgeConflict(session: Session, edgeId: string, keyDigest: string): Promise<AppError> {
  const now = await session.selectFrom("edges").select("key_digest").where("id", "=", edgeId).executeTakeFirst();
  if (now !== undefined && now.key_digest !== keyDigest) return edgeTaken(edgeId);
  return new AppError("conflict", `another join of this machine as an edge is under way: join as '${edgeId}' again`);
}

/** @throws {AppError} forbidden when there is no such token, or it makes something else of a machine */
async function tokenFor(
  kind: MachineKind,
  session: Database | Session,
  { tokenId, hash }: Pick<Claim, "tokenId" | "hash">,
): Promise<JoinTokenRecord> {
  const row = await session
    .selectFrom("join_tokens")
    .selectAll()
    .where("id", "=", tokenId)
    .where("hash", "=", hash)
    .executeTakeFirst();
  if (row === undefined) {
    throw new AppError(
      "forbidden",
      "the platform does not know this join token: make one with POST /admin/join-tokens",
    );
  }
  const token = joinTokenTable.toRecord(row);
  const { kind: made = "node" } = token;
  if (made === kind) return token;
  throw new AppError(
    "forbidden",
    `join token ${tokenId} is for ${ONE_OF[made]}, and this machine would become ${ONE_OF[kind]}: make a token for that (POST /admin/join-tokens with {"kind": "${kind}"})`,
  );
}

const ONE_OF: Readonly<Record<MachineKind, string>> = { node: "a node", edge: "an edge" };

/** @throws {AppError} conflict */
async function take(
  session: Session,
  tokenId: string,
  used: { readonly usedAt: number; readonly nodeId?: string; readonly edgeId?: string },
): Promise<void> {
  const taken = await session
    .updateTable("join_tokens")
    .set(joinTokenTable.toColumns(used))
    .where("id", "=", tokenId)
    .where("used_at", "is", null)
    .where("revoked_at", "is", null)
    .returning("id")
    .executeTakeFirst();
  if (taken === undefined)
    throw new AppError("conflict", `join token ${tokenId} was used by another machine, or revoked, at this moment`);
}

/** @throws {AppError} forbidden with the way out */
function checkUsable({ id, usedAt, nodeId, edgeId, revokedAt, expiresAt }: JoinTokenRecord, at: number): void {
  const refuse = (what: string) => {
    throw new AppError("forbidden", `join token ${id} ${what}: make another one with POST /admin/join-tokens`);
  };
  if (revokedAt !== undefined) refuse(`was revoked at ${iso(revokedAt)}`);
  if (usedAt !== undefined)
    refuse(
      `was used at ${iso(usedAt)} by ${edgeId === undefined ? `node '${nodeId ?? ""}'` : `edge '${edgeId}'`}, and is valid once`,
    );
  if (expiresAt <= at) refuse(`ended at ${iso(expiresAt)}, and is valid for one hour`);
}

function tokenOf(session: Session, id: string) {
  return session.selectFrom("join_tokens").select("id").where("id", "=", id).executeTakeFirst();
}

async function isKnown(session: Session, nodeId: string): Promise<boolean> {
  return (await session.selectFrom("nodes").select("id").where("id", "=", nodeId).executeTakeFirst()) !== undefined;
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

/**
 * SQL on the platform's authorities: the one in force, and the one that is to take its place. Each step is one statement or one
 * transaction with a condition, so that orchestrators may repeat and race it.
 */

import { sql } from "kysely";
import type { Database } from "../tables.ts";
import { type AuthorityRecord, authorityTable, edgeTable, memberTable } from "./record.ts";

/** The one in force has this id, whichever it is: earlier versions know no other. */
export const IN_FORCE = "platform";
export const NEXT = "platform-next";

/** What a machine that has joined says that it trusts. */
export interface MachineTrust {
  readonly kind: "node" | "edge";
  readonly id: string;
  readonly joinedAt: number;
  /** Digests of authorities. */
  readonly trusted: readonly string[];
  readonly issuer: string | undefined;
  /** When it said so last; undefined: never. */
  readonly askedAt: number | undefined;
}

export interface Said {
  readonly trusted: readonly string[];
  readonly issuer: string;
}

/** What a machine says again within this time is not written again. */
const FRESH_MS = 600_000;

export type AuthorityStore = ReturnType<typeof authorityStore>;

export function authorityStore(db: Database, now: () => number) {
  const insert = (record: AuthorityRecord) =>
    db
      .insertInto("authorities")
      .values(authorityTable.toRow(record))
      .onConflict((conflict) => conflict.column("id").doNothing())
      .execute();

  return {
    /** The one in force first. */
    async all(): Promise<AuthorityRecord[]> {
      return (await db.selectFrom("authorities").selectAll().orderBy("id").execute()).map(authorityTable.toRecord);
    },

    /** Adds the authority, unless one of its id is there: of several orchestrators the first one holds. */
    async add(record: AuthorityRecord): Promise<void> {
      await insert(record);
    },

    /** The next authority signs from now on. A repeated call changes nothing. */
    async sign(): Promise<void> {
      await db
        .updateTable("authorities")
        .set({ signs_since: now() })
        .where("id", "=", NEXT)
        .where("signs_since", "is", null)
        .execute();
    },

    /**
     * Puts the next authority in the place of the one in force, which is dropped. False: another orchestrator has done it.
     * @param former certificate of the one that is dropped
     */
    async drop(former: string, next: AuthorityRecord): Promise<boolean> {
      return db.transaction().execute(async (session) => {
        const gone = await session
          .deleteFrom("authorities")
          .where("id", "=", IN_FORCE)
          .where("certificate", "=", former)
          .returning("id")
          .executeTakeFirst();
        if (gone === undefined) return false;
        await session.deleteFrom("authorities").where("id", "=", NEXT).execute();
        await session.insertInto("authorities").values(authorityTable.toRow(next)).execute();
        return true;
      });
    },

    async say(kind: MachineTrust["kind"], id: string, { trusted, issuer }: Said): Promise<void> {
      const trusts = JSON.stringify([...trusted].sort());
      const change = { trusts, certified_by: issuer, asked_at: now() };
      const isNews = sql<boolean>`(trusts is null or trusts <> ${trusts} or certified_by <> ${issuer} or asked_at < ${now() - FRESH_MS})`;
      await (kind === "node"
        ? db.updateTable("members").set(change).where("node_id", "=", id).where(isNews)
        : db.updateTable("edges").set(change).where("id", "=", id).where(isNews)
      ).execute();
    },

    /** Every node and edge that has joined. */
    async machines(): Promise<MachineTrust[]> {
      const nodes = (await db.selectFrom("members").selectAll().orderBy("node_id").execute()).map(memberTable.toRecord);
      const edges = (await db.selectFrom("edges").selectAll().orderBy("id").execute()).map(edgeTable.toRecord);
      return [
        ...nodes.map((node) => ({ kind: "node" as const, id: node.nodeId, ...trustOf(node) })),
        ...edges.map((edge) => ({ kind: "edge" as const, id: edge.id, ...trustOf(edge) })),
      ];
    },

    /** Join tokens that a machine may still use. */
    async unusedTokens(): Promise<{ readonly id: string; readonly expiresAt: number }[]> {
      const rows = await db
        .selectFrom("join_tokens")
        .select(["id", "expires_at"])
        .where("used_at", "is", null)
        .where("revoked_at", "is", null)
        .where("expires_at", ">", now())
        .orderBy("expires_at", "desc")
        .execute();
      return rows.map(({ id, expires_at: expiresAt }) => ({ id, expiresAt }));
    },

    /** Versions of the orchestrators that use the database, apart from this one's. */
    async otherVersions(version: string): Promise<string[]> {
      const rows = await db
        .selectFrom("orchestrators")
        .select("version")
        .distinct()
        .where("version", "<>", version)
        .where("expires_at", ">", now())
        .execute();
      return rows.map((row) => row.version);
    },
  };
}

interface Trusting {
  readonly joinedAt: number;
  readonly trusts: string | undefined;
  readonly certifiedBy: string | undefined;
  readonly askedAt: number | undefined;
}

function trustOf({ joinedAt, trusts, certifiedBy, askedAt }: Trusting): Omit<MachineTrust, "kind" | "id"> {
  const trusted = trusts === undefined ? [] : (JSON.parse(trusts) as string[]);
  return { joinedAt, trusted, issuer: certifiedBy, askedAt };
}

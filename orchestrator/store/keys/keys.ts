/** API keys: hashes and masks, never a key. The only SQL on them. */

import type { Scope } from "../../../shared/http/scopes.ts";
import { hashApiKey, newApiKey, newUuid } from "../../../shared/ids.ts";
import type { Changes } from "../changes/changes.ts";
import { type Project, toProject } from "../projects/record.ts";
import type { Database } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type KeyRecord, keyTable, scopesOf } from "./record.ts";

/** An API key as the orchestrator uses it, with its project. Times are unix milliseconds. */
export interface KeyOwner {
  readonly keyId: string;
  readonly name: string;
  readonly mask: string;
  readonly scopes: readonly Scope[];
  /** Undefined: the key does not expire. */
  readonly expiresAt: number | undefined;
  readonly project: Project;
}

export interface NewKey {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly expiresAt: number | undefined;
  readonly createdBy: string;
}

/** Fields that are absent stay as they are. */
export type KeyChange = Pick<NewKey, "name"> & Partial<Pick<NewKey, "scopes" | "expiresAt">>;

export type KeyStore = ReturnType<typeof keyStore>;

export function keyStore(db: Database, { now, changes }: { readonly now: () => number; readonly changes: Changes }) {
  async function ownerOf(column: "api_keys.hash" | "api_keys.id", value: string): Promise<KeyOwner | undefined> {
    const row = await db
      .selectFrom("api_keys")
      .innerJoin("projects", "projects.id", "api_keys.project_id")
      .selectAll("projects")
      .select([
        "api_keys.id as key_id",
        "api_keys.name as key_name",
        "api_keys.mask_prefix",
        "api_keys.mask_suffix",
        "api_keys.scopes",
        "api_keys.expires_at",
      ])
      .where(column, "=", value)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    return {
      keyId: row.key_id,
      name: row.key_name,
      mask: maskOf(row),
      scopes: scopesOf(row.scopes),
      expiresAt: row.expires_at ?? undefined,
      project: toProject(row),
    };
  }

  return {
    /** Only this answer contains the key. */
    async create(projectId: string, made: NewKey): Promise<{ readonly key: string; readonly record: KeyRecord }> {
      const key = newApiKey();
      const value = key.slice(key.indexOf("_") + 1);
      const row = keyTable.toRow({
        ...made,
        id: newUuid(),
        projectId,
        hash: hashApiKey(key),
        maskPrefix: value.slice(0, 2),
        maskSuffix: value.slice(-4),
        valueLength: value.length,
        createdAt: now(),
      });
      await inTransaction(db, (session) => session.insertInto("api_keys").values(row).execute());
      return { key, record: keyTable.toRecord(row) };
    },

    findOwner: (hash: string): Promise<KeyOwner | undefined> => ownerOf("api_keys.hash", hash),

    /** By the key's id, for a session of the console. */
    findOwnerById: (id: string): Promise<KeyOwner | undefined> => ownerOf("api_keys.id", id),

    async list(projectId: string): Promise<KeyRecord[]> {
      const rows = await db
        .selectFrom("api_keys")
        .selectAll()
        .where("project_id", "=", projectId)
        .orderBy("created_at", "desc")
        .execute();
      return rows.map(keyTable.toRecord);
    },

    /** The hash of the changed key, for this process's cache; undefined: the project has no such key. */
    async change(projectId: string, id: string, { name, scopes, expiresAt }: KeyChange): Promise<string | undefined> {
      return changes.throughout(async (session) => {
        const row = await session
          .updateTable("api_keys")
          .set(keyTable.toColumns({ name, scopes, expiresAt }))
          .where("project_id", "=", projectId)
          .where("id", "=", id.toLowerCase())
          .returning("hash")
          .executeTakeFirst();
        if (row !== undefined) await changes.note(session, "key", row.hash);
        return row?.hash;
      });
    },

    /** The hash of the deleted key, for this process's cache; undefined: the project has no such key. */
    async delete(projectId: string, id: string): Promise<string | undefined> {
      return changes.throughout(async (session) => {
        const row = await session
          .deleteFrom("api_keys")
          .where("project_id", "=", projectId)
          .where("id", "=", id.toLowerCase())
          .returning("hash")
          .executeTakeFirst();
        if (row !== undefined) await changes.note(session, "key", row.hash);
        return row?.hash;
      });
    },

    /** Writes the times of last use, by key, in one transaction. */
    async touch(uses: ReadonlyMap<string, number>): Promise<void> {
      await inTransaction(db, async (session) => {
        for (const [id, at] of uses) {
          await session
            .updateTable("api_keys")
            .set({ last_used_at: at })
            .where("id", "=", id)
            // Another process may have written a later use.
            .where((where) => where.or([where("last_used_at", "is", null), where("last_used_at", "<", at)]))
            .execute();
        }
      });
    },
  };
}

/** How the key is named to people and in records: its first and last characters. */
function maskOf({
  mask_prefix: first,
  mask_suffix: last,
}: {
  readonly mask_prefix: string;
  readonly mask_suffix: string;
}): string {
  return `svc_${first}…${last}`;
}

/** API keys: hashes and masks, never a key. The only SQL on them. */

import { hashApiKey, newApiKey, newUuid } from "../../shared/ids.ts";
import { type Project, toProject } from "./projects.ts";
import type { Database, KeyRow } from "./tables.ts";

export interface KeyOwner {
  readonly keyId: string;
  readonly project: Project;
}

export type KeyStore = ReturnType<typeof keyStore>;

export function keyStore(db: Database, now: () => number) {
  return {
    /** Only this answer contains the key. */
    async create(projectId: string, name: string): Promise<{ readonly key: string; readonly row: KeyRow }> {
      const key = newApiKey();
      const value = key.slice(key.indexOf("_") + 1);
      const row: KeyRow = {
        id: newUuid(),
        project_id: projectId,
        name,
        hash: hashApiKey(key),
        mask_prefix: value.slice(0, 2),
        mask_suffix: value.slice(-4),
        value_length: value.length,
        created_at: now(),
        last_used_at: null,
      };
      await db.insertInto("api_keys").values(row).execute();
      return { key, row };
    },

    async findOwner(hash: string): Promise<KeyOwner | undefined> {
      const row = await db
        .selectFrom("api_keys")
        .innerJoin("projects", "projects.id", "api_keys.project_id")
        .selectAll("projects")
        .select("api_keys.id as key_id")
        .where("api_keys.hash", "=", hash)
        .executeTakeFirst();
      return row === undefined ? undefined : { keyId: row.key_id, project: toProject(row) };
    },

    async list(projectId: string): Promise<KeyRow[]> {
      return db
        .selectFrom("api_keys")
        .selectAll()
        .where("project_id", "=", projectId)
        .orderBy("created_at", "desc")
        .execute();
    },

    /** False: no such key in this project. */
    async rename(projectId: string, id: string, name: string): Promise<boolean> {
      const result = await db
        .updateTable("api_keys")
        .set({ name })
        .where("project_id", "=", projectId)
        .where("id", "=", id.toLowerCase())
        .executeTakeFirst();
      return result.numUpdatedRows === 1n;
    },

    /** The hash of the deleted key, for the cache; undefined: the project has no such key. */
    async delete(projectId: string, id: string): Promise<string | undefined> {
      const row = await db
        .deleteFrom("api_keys")
        .where("project_id", "=", projectId)
        .where("id", "=", id.toLowerCase())
        .returning("hash")
        .executeTakeFirst();
      return row?.hash;
    },

    async touch(id: string, at: number): Promise<void> {
      await db.updateTable("api_keys").set({ last_used_at: at }).where("id", "=", id).execute();
    },
  };
}

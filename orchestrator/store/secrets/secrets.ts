/** SQL on secrets: values and data keys encrypted, never in clear. Each change is one transaction. */

import { newSecretId } from "../../../shared/ids.ts";
import { lock, locks } from "../locks.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type SecretRecord, secretTable } from "./record.ts";

/** A data key, encrypted with the key-encryption key that `keyId` names. */
export interface WrappedKey {
  readonly keyId: string;
  readonly wrapped: string;
}

/** The value of one version, encrypted with its data key. */
export interface SealedValue extends WrappedKey {
  readonly value: string;
}

export interface StoredValue extends SealedValue {
  readonly id: string;
  readonly version: number;
}

interface NewSecret {
  readonly id: string;
  readonly projectId: string;
  readonly name: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly sealed: SealedValue;
}

/** The next version of a secret whose version was `from`. Without `metadata` the present one stays. */
interface NewVersion {
  readonly id: string;
  readonly from: number;
  readonly sealed: SealedValue;
  readonly metadata: Readonly<Record<string, string>> | undefined;
}

interface Rewrap {
  readonly id: string;
  readonly from: WrappedKey;
  readonly to: WrappedKey;
}

export type SecretStore = ReturnType<typeof secretStore>;

export function secretStore(db: Database, now: () => number) {
  return {
    newId: newSecretId,

    /** `taken`: the project has a secret of that name; `full`: it has `most` secrets. */
    async add({ id, projectId, name, metadata, sealed }: NewSecret, most: number) {
      return inTransaction(db, async (session): Promise<SecretRecord | "taken" | "full"> => {
        await lock(session, locks.project(projectId));
        if ((await find(session, projectId, name)) !== undefined) return "taken";
        const { count } = await session
          .selectFrom("secrets")
          .select((select) => select.fn.countAll<number | string>().as("count"))
          .where("project_id", "=", projectId)
          .executeTakeFirstOrThrow();
        if (Number(count) >= most) return "full";
        const at = now();
        const { value, keyId, wrapped } = sealed;
        const row = secretTable.toRow({
          id,
          projectId,
          name,
          metadata,
          value,
          keyId,
          wrapped,
          version: 1,
          wrappedAt: at,
          createdAt: at,
          updatedAt: at,
        });
        await session.insertInto("secrets").values(row).execute();
        return secretTable.toRecord(row);
      });
    },

    /** @param reference id or name */
    find: (projectId: string, reference: string) => find(db, projectId, reference),

    async list(projectId: string): Promise<SecretRecord[]> {
      return (
        await db.selectFrom("secrets").select(secretTable.columns).where("project_id", "=", projectId).execute()
      ).map(secretTable.toRecord);
    },

    /** Those of `names` that the project has. */
    async existing(projectId: string, names: readonly string[]): Promise<ReadonlySet<string>> {
      const rows = await db
        .selectFrom("secrets")
        .select("name")
        .where("project_id", "=", projectId)
        .where("name", "in", names)
        .execute();
      return new Set(rows.map(({ name }) => name));
    },

    async value(projectId: string, name: string): Promise<StoredValue | undefined> {
      const row = await db
        .selectFrom("secrets")
        .select(["id", "version", "value", "data_key", "key_id"])
        .where("project_id", "=", projectId)
        .where("name", "=", name)
        .executeTakeFirst();
      return row === undefined ? undefined : { ...toStored(row), value: row.value };
    },

    /** Replaces the value. Undefined: the secret was deleted, or has another version than `from`. */
    async replace({ id, from, sealed, metadata }: NewVersion): Promise<SecretRecord | undefined> {
      return inTransaction(db, async (session) => {
        const at = now();
        const row = await session
          .updateTable("secrets")
          .set(secretTable.toColumns({ ...sealed, version: from + 1, wrappedAt: at, updatedAt: at, metadata }))
          .where("id", "=", id)
          .where("version", "=", from)
          .returning(secretTable.columns)
          .executeTakeFirst();
        return row === undefined ? undefined : secretTable.toRecord(row);
      });
    },

    /** The deleted secret; undefined: the project has none of that id or name. */
    async delete(projectId: string, reference: string): Promise<SecretRecord | undefined> {
      return inTransaction(db, async (session) => {
        const found = await find(session, projectId, reference);
        if (found !== undefined) await session.deleteFrom("secrets").where("id", "=", found.id).execute();
        return found;
      });
    },

    /** How many secrets need each key-encryption key. */
    async keysInUse(): Promise<{ readonly keyId: string; readonly secrets: number }[]> {
      const rows = await db
        .selectFrom("secrets")
        .select((select) => ["key_id", select.fn.countAll<number | string>().as("count")])
        .groupBy("key_id")
        .orderBy("key_id")
        .execute();
      return rows.map((row) => ({ keyId: row.key_id, secrets: Number(row.count) }));
    },

    /** Data keys that another key than `current` encrypted, or `current` before a time, after the id `after`. */
    async toRewrap(left: {
      readonly current: string;
      readonly wrappedBefore: number;
      readonly after: string;
      readonly limit: number;
    }): Promise<({ readonly id: string } & WrappedKey)[]> {
      const rows = await db
        .selectFrom("secrets")
        .select(["id", "version", "data_key", "key_id"])
        .where("id", ">", left.after)
        .where((where) => where.or([where("key_id", "!=", left.current), where("wrapped_at", "<", left.wrappedBefore)]))
        .orderBy("id")
        .limit(left.limit)
        .execute();
      return rows.map(toStored);
    },

    /** Replaces wrapped data keys, except those of secrets that have changed meanwhile. Returns how many it replaced. */
    async rewrap(batch: readonly Rewrap[]): Promise<number> {
      return inTransaction(db, async (session) => {
        let replaced = 0;
        for (const { id, from, to } of batch) {
          const result = await session
            .updateTable("secrets")
            .set({ data_key: to.wrapped, key_id: to.keyId, wrapped_at: now() })
            .where("id", "=", id)
            .where("key_id", "=", from.keyId)
            .where("data_key", "=", from.wrapped)
            .executeTakeFirst();
          replaced += Number(result.numUpdatedRows);
        }
        return replaced;
      });
    },
  };
}

/** No name begins as ids do, so a reference is one or the other. */
async function find(session: Session, projectId: string, reference: string): Promise<SecretRecord | undefined> {
  const lower = reference.toLowerCase();
  const row = await session
    .selectFrom("secrets")
    .select(secretTable.columns)
    .where("project_id", "=", projectId)
    .where(lower.startsWith("sec_") ? "id" : "name", "=", lower)
    .executeTakeFirst();
  return row === undefined ? undefined : secretTable.toRecord(row);
}

function toStored(row: {
  readonly id: string;
  readonly version: number;
  readonly data_key: string;
  readonly key_id: string;
}) {
  return { id: row.id, version: row.version, keyId: row.key_id, wrapped: row.data_key };
}

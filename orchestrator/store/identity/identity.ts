/**
 * SQL on the keys that sign workload identity tokens. Every change reads all keys, lets the caller decide and writes the
 * decision, in one transaction: after a crash either all of it is stored or nothing.
 */

import { AppError } from "../../../shared/http/errors.ts";
import { lock, locks } from "../locks.ts";
import type { Database, Session } from "../tables.ts";
import { inTransaction } from "../transactions.ts";
import { type IdentityKey, identityKeyTable } from "./record.ts";

export type Algorithm = IdentityKey["algorithm"];

export type NewIdentityKey = Pick<IdentityKey, "kid" | "algorithm" | "publicKey"> & {
  readonly sealedPrivateKey: string;
};

/** What changes; an absent field changes nothing. */
export interface KeyPlan {
  /** Adds the new key, which signs from this time. */
  readonly addAt?: number;
  /** Lets this key sign from another time. */
  readonly move?: { readonly kid: string; readonly signsFrom: number };
  readonly remove?: readonly string[];
  /** Removes the private halves of these keys. */
  readonly erase?: readonly string[];
}

export type IdentityStore = ReturnType<typeof identityStore>;

export function identityStore(db: Database, now: () => number) {
  return {
    /** In the order in which they were made. */
    list: () => read(db),

    /**
     * Returns the keys after the change.
     * @param fresh the key to add, if the plan adds one
     * @param tokenMs the lifetime of tokens from now on
     */
    async change(
      { fresh, tokenMs }: { readonly fresh: NewIdentityKey | undefined; readonly tokenMs: number },
      decide: (keys: readonly IdentityKey[]) => KeyPlan,
    ): Promise<IdentityKey[]> {
      return inTransaction(db, async (session) => {
        await lock(session, locks.identity);
        const keys = await read(session);
        const { addAt, move, remove = [], erase = [] } = decide(keys);
        if (addAt !== undefined) {
          if (fresh === undefined) throw new AppError("conflict", "the signing keys were changed by another request");
          const sequence = (keys.at(-1)?.sequence ?? 0) + 1;
          await add(session, { ...fresh, sequence, createdAt: now(), signsFrom: addAt, tokenMs });
        }
        if (move !== undefined) {
          const { kid, signsFrom } = move;
          await session.updateTable("identity_keys").set({ signs_from: signsFrom }).where("kid", "=", kid).execute();
        }
        if (erase.length > 0) {
          await session.updateTable("identity_keys").set({ private_key: null }).where("kid", "in", erase).execute();
        }
        if (remove.length > 0) await session.deleteFrom("identity_keys").where("kid", "in", remove).execute();
        await session
          .updateTable("identity_keys")
          .set({ token_ms: tokenMs })
          .where("token_ms", "<", tokenMs)
          .where("private_key", "is not", null)
          .execute();
        return read(session);
      });
    },
  };
}

async function add(session: Session, key: IdentityKey): Promise<void> {
  // Another program that uses the database has just added one: its key serves both.
  await session
    .insertInto("identity_keys")
    .values(identityKeyTable.toRow(key))
    .onConflict((conflict) => conflict.column("sequence").doNothing())
    .execute();
}

async function read(session: Session): Promise<IdentityKey[]> {
  return (await session.selectFrom("identity_keys").selectAll().orderBy("sequence").execute()).map(
    identityKeyTable.toRecord,
  );
}

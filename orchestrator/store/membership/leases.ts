/**
 * Leases of rounds: of all orchestrators one at a time does the rounds of a name. Whoever asks takes a lease that nobody
 * has, and keeps it for as long as its process is a member.
 */

import { sql } from "kysely";
import { type Loop, type LoopOptions, loop } from "../../../shared/program/loop.ts";
import type { Database } from "../tables.ts";
import { CLOCK } from "./clock.ts";
import type { Member } from "./record.ts";

export interface Leases {
  /** Aborts when another process may have the lease. Undefined: another one has it. */
  lead(name: string): Promise<AbortSignal | undefined>;
}

/** As `loop`; of all orchestrators one at a time does the rounds of a name. */
export type Rounds = (options: LoopOptions, round: (signal: AbortSignal) => unknown) => Loop;

interface LeaseDeps {
  readonly id: string;
  readonly leaseMs: number;
  readonly self: () => (Member & { readonly signal: AbortSignal }) | undefined;
}

/** The leases of the only process on its database. */
export const allLeases: Leases = { lead: () => Promise.resolve(new AbortController().signal) };

/** Rounds that the leases divide among the orchestrators. */
export function roundsWith(leases: Leases): Rounds {
  return (options, round) =>
    loop(options, async (stopping) => {
      const leading = await leases.lead(options.name);
      if (leading !== undefined) await round(AbortSignal.any([stopping, leading]));
    });
}

export function leaseStore(db: Database, { id, leaseMs, self }: LeaseDeps) {
  const until = sql<number>`${CLOCK} + ${leaseMs}`;
  return {
    async lead(name: string): Promise<AbortSignal | undefined> {
      const member = self();
      if (member === undefined) return undefined;
      const taken = await db
        .insertInto("leases")
        .values({ name, owner: id, epoch: 1, expires_at: until })
        .onConflict((conflict) =>
          conflict
            .column("name")
            .doUpdateSet((update) => ({
              owner: update.ref("excluded.owner"),
              epoch: sql<number>`leases.epoch + case when leases.owner = excluded.owner then 0 else 1 end`,
              expires_at: update.ref("excluded.expires_at"),
            }))
            .where((where) => where.or([where("leases.owner", "=", id), where("leases.expires_at", "<=", CLOCK)])),
        )
        .returning("epoch")
        .executeTakeFirst();
      return taken === undefined || member.signal.aborted ? undefined : member.signal;
    },

    /** Keeps those that this process has. A lapsed one is left to whoever asks first. */
    async renew(): Promise<void> {
      await db
        .updateTable("leases")
        .set({ expires_at: until })
        .where("owner", "=", id)
        .where("expires_at", ">", CLOCK)
        .execute();
    },

    async leave(): Promise<void> {
      await db.deleteFrom("leases").where("owner", "=", id).execute();
    },
  };
}

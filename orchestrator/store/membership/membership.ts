/**
 * The orchestrators that use the database: a row each, which its process renews. A process whose row has lapsed is none of
 * them any more: others take over what it owned. It finds that out by its own clock, before they do, and begins again with a
 * higher epoch. All times in rows are the database's; so a wrong clock of a machine decides nothing.
 */

import { sql } from "kysely";
import { newUuid } from "../../../shared/ids.ts";
import { type Loop, loop } from "../../../shared/program/loop.ts";
import type { Database, Session } from "../tables.ts";
import { CLOCK, createDifference, type DifferenceDeps } from "./clock.ts";
import { type Leases, leaseStore } from "./leases.ts";
import type { Member } from "./record.ts";
import { checkSameKeys, type SharedKeys } from "./same-keys.ts";

/** What this process is at the moment. */
interface Self extends Member {
  /** Aborts when the process is no member any more, or a member with another epoch. */
  readonly signal: AbortSignal;
}

export interface Membership extends Leases {
  /** Of this process, for as long as it runs. */
  readonly id: string;
  /** Undefined: others may take over what this process owns. */
  readonly self: Self | undefined;
  /** Ends the membership at once: nobody waits until the row lapses. */
  stop(): Promise<void>;
}

export interface MembershipDeps extends DifferenceDeps {
  /** With the differences that `onDifference` was called with. */
  readonly now: () => number;
  readonly version: string;
  /** How long a process may be silent. */
  readonly leaseMs: number;
  /** What the others must have too; absent: nothing. */
  readonly keys?: SharedKeys;
}

/** Renewals in the time of a lease. */
const RENEWALS = 6;
/** Members that lapsed so long ago are forgotten. */
const FORGET_MS = 86_400_000;

/**
 * Resolves when this process is a member. PostgreSQL only.
 * @throws {AppError} failed_precondition, when its keys are not those of the other members
 */
export async function joinMembers(db: Database, deps: MembershipDeps): Promise<Membership> {
  const { log, leaseMs } = deps;
  const id = newUuid();
  const marginMs = leaseMs / RENEWALS;
  const clock = createDifference(deps);
  const state = {
    self: undefined as (Self & { readonly ending: AbortController }) | undefined,
    lapse: undefined as NodeJS.Timeout | undefined,
  };

  function end(): void {
    clearTimeout(state.lapse);
    const { self } = state;
    state.self = undefined;
    self?.ending.abort();
  }

  /** @param asked when the renewal was asked for, by this process's monotonic clock: the row lapses no earlier than counted from it */
  function livesSince(asked: number): void {
    clearTimeout(state.lapse);
    const left = asked + leaseMs - marginMs - performance.now();
    state.lapse = setTimeout(() => {
      log.error({ id, leaseMs }, "could not renew the membership of this orchestrator in time: it stops its rounds");
      end();
    }, left);
    state.lapse.unref();
  }

  async function renew({ epoch }: Member): Promise<boolean> {
    const [asked, at] = [performance.now(), deps.now()];
    const row = await db
      .updateTable("orchestrators")
      .set({ expires_at: sql<number>`${CLOCK} + ${leaseMs}` })
      .where("id", "=", id)
      .where("epoch", "=", epoch)
      .where("expires_at", ">", CLOCK)
      .returning("expires_at")
      .executeTakeFirst();
    if (row === undefined) return false;
    clock.read(row.expires_at - leaseMs, { at, askedMs: performance.now() - asked });
    await leases.renew();
    if (state.self?.epoch === epoch) livesSince(asked);
    return true;
  }

  async function join(): Promise<void> {
    end();
    const [asked, at] = [performance.now(), deps.now()];
    const row = await db
      .insertInto("orchestrators")
      .values({
        id,
        epoch: 1,
        version: deps.version,
        expires_at: sql<number>`${CLOCK} + ${leaseMs}`,
        settings: deps.keys === undefined ? null : JSON.stringify(deps.keys),
      })
      .onConflict((conflict) =>
        conflict.column("id").doUpdateSet((update) => ({
          epoch: sql<number>`${update.ref("orchestrators.epoch")} + 1`,
          expires_at: update.ref("excluded.expires_at"),
        })),
      )
      .returning(["epoch", "expires_at"])
      .executeTakeFirstOrThrow();
    clock.read(row.expires_at - leaseMs, { at, askedMs: performance.now() - asked });
    const ending = new AbortController();
    state.self = { id, epoch: row.epoch, signal: ending.signal, ending };
    livesSince(asked);
    if (row.epoch > 1) log.warn({ id, epoch: row.epoch }, "this orchestrator is a member again, after it had lapsed");
    await db.deleteFrom("orchestrators").where("expires_at", "<", sql<number>`${CLOCK} - ${FORGET_MS}`).execute();
  }

  async function beat(): Promise<void> {
    const { self } = state;
    if (self !== undefined && (await renew(self))) return;
    await join();
  }

  /** After the row is there, so that of two that begin at the same time at least one sees the other. */
  async function compareKeys(): Promise<void> {
    const others = await db
      .selectFrom("orchestrators")
      .select(["id", "settings as keys"])
      .where("id", "!=", id)
      .where("expires_at", ">", CLOCK)
      .execute();
    checkSameKeys(deps.keys ?? {}, others);
  }

  async function leave(): Promise<void> {
    end();
    await leases.leave();
    await db.deleteFrom("orchestrators").where("id", "=", id).execute();
  }

  const leases = leaseStore(db, { id, leaseMs, self: () => state.self });
  await join();
  try {
    await compareKeys();
  } catch (error) {
    await leave();
    throw error;
  }
  const beating: Loop = loop({ name: "membership", everyMs: leaseMs / RENEWALS, log }, beat);

  return {
    id,
    get self() {
      return state.self;
    },
    lead: (name) => leases.lead(name),
    async stop() {
      await beating.stop();
      await leave();
    },
  };
}

/** Whether a member lives, as a condition on a row that names its id and epoch. */
export function lives(session: Session, member: { readonly owner: string; readonly epoch: string }) {
  return sql<boolean>`exists ${session
    .selectFrom("orchestrators")
    .select("orchestrators.id")
    .whereRef("orchestrators.id", "=", sql.ref(member.owner))
    .whereRef("orchestrators.epoch", "=", sql.ref(member.epoch))
    .where("orchestrators.expires_at", ">", CLOCK)}`;
}

/**
 * What orchestrators do with sandboxes: at most one unfinished operation for each, by a unique index. A move into a
 * transition begins one, in its own transaction, and the move out of it ends it. An operation belongs to its owner for as
 * long as that is a member; then whoever comes next takes it over and repeats its call to the node, and moves of the former
 * owner find nothing that is theirs.
 */

import { type RawBuilder, sql } from "kysely";
import { AppError, type ErrorCode } from "../../../shared/http/errors.ts";
import { newUuid } from "../../../shared/ids.ts";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import { CLOCK } from "../membership/clock.ts";
import { lives } from "../membership/membership.ts";
import type { Member } from "../membership/record.ts";
import type { Move } from "../sandboxes/move.ts";
import type { Database, Session } from "../tables.ts";
import { AIMS, type Aim, Overtaken, UnderWay } from "./record.ts";

/** An operation of another orchestrator. */
export interface Elsewhere {
  readonly id: string;
  readonly aim: Aim;
}

/** What moves of sandboxes need, within their transactions. */
export interface MovingOperations {
  /** Whether no other orchestrator works on the sandbox that this column names: a condition. */
  isFree(column: string): RawBuilder<boolean>;
  /** Lets everybody take over what lapsed members own, and forgets failures that nobody waits for any more. */
  abandonLapsed(): Promise<void>;
  /** @throws {UnderWay} another orchestrator works on the sandbox */
  begin(session: Session, sandboxId: string, aim: Aim): Promise<void>;
  /** False: it is not this process's any more. @param failure for callers elsewhere */
  end(session: Session, sandboxId: string, failure?: AppError): Promise<boolean>;
  /**
   * Follows a move: one into a transition begins an operation, one out of it ends it. When the sandbox has ended, so has
   * whatever anybody does with it.
   * @throws {UnderWay} as `begin`
   * @throws {Overtaken} another orchestrator has taken over what the move would end
   */
  moved(session: Session, move: Pick<Move, "id" | "to" | "failure">): Promise<void>;
}

export interface Operations extends MovingOperations {
  /** Undefined: no other orchestrator works on the sandbox. */
  elsewhere(sandboxId: string): Promise<Elsewhere | undefined>;
  /** Why it failed; undefined: it succeeded, or was given up. */
  outcome(id: string): Promise<"under way" | AppError | undefined>;
  /**
   * Makes the operation in whose middle the sandbox is found this process's. @throws {UnderWay} it is another's, or has ended
   * @param during the states that a sandbox is in while such an operation is under way
   */
  take(sandboxId: string, aim: Aim, during: readonly SandboxState[]): Promise<void>;
  /** This process works on it no longer, and its outcome is unknown. */
  release(sandboxId: string, aim: Aim): Promise<void>;
}

const IN_TRANSITION: readonly SandboxState[] = ["starting", "pausing", "snapshotting", "rewinding", "killing"];
/** How long a failure stays, for callers that look every few hundred milliseconds. */
const KEPT_MS = 60_000;
/** An unfinished operation that is older, of a sandbox in no transition or of a fork, is left over. */
const LEFT_MS = 3_600_000;

/** @param self this process as a member; undefined: others may do its work at the moment */
export function operationStore(db: Database, self: () => Member | undefined): Operations {
  function mine(): Member {
    const member = self();
    if (member !== undefined) return member;
    throw new AppError("unavailable", "this orchestrator has lost its connection to the database: try again");
  }

  const unfinished = (session: Session, sandboxId: string) =>
    session.selectFrom("operations").where("sandbox_id", "=", sandboxId).where("ended_at", "is", null);

  const livingOwner = (session: Session) => lives(session, { owner: "operations.owner", epoch: "operations.epoch" });

  /** Inserts the operation, or replaces one that may be taken over. */
  async function claim(
    session: Session,
    { sandboxId, aim, of }: { readonly sandboxId: string; readonly aim: Aim; readonly of: ReturnType<typeof sql> },
  ): Promise<void> {
    const { id: owner, epoch } = mine();
    const { rows } = await sql`
      insert into operations (id, sandbox_id, aim, owner, epoch, begun_at)
      select ${newUuid()}, ${sandboxId}, ${aim}, ${owner}, ${epoch}::bigint, ${CLOCK} ${of}
      on conflict (sandbox_id) where ended_at is null do update
        set id = excluded.id, aim = excluded.aim, owner = excluded.owner, epoch = excluded.epoch, begun_at = excluded.begun_at
        where operations.owner = excluded.owner or not ${livingOwner(session)}
          or (excluded.aim = 'gone' and operations.aim in ('running', 'network', 'rewinding'))
      returning id`.execute(session);
    if (rows.length === 0) throw new UnderWay();
  }

  const begin = (session: Session, sandboxId: string, aim: Aim) => claim(session, { sandboxId, aim, of: sql`` });

  async function end(session: Session, sandboxId: string, failure?: AppError): Promise<boolean> {
    const member = self();
    if (member === undefined) return false;
    if (failure === undefined) {
      const deleted = await session
        .deleteFrom("operations")
        .where("sandbox_id", "=", sandboxId)
        .where("ended_at", "is", null)
        .where("owner", "=", member.id)
        .where("epoch", "=", member.epoch)
        .executeTakeFirst();
      return deleted.numDeletedRows === 1n;
    }
    const { code, message, details } = failure;
    const updated = await session
      .updateTable("operations")
      .set({ ended_at: CLOCK, failure: JSON.stringify({ code, message, details }) })
      .where("sandbox_id", "=", sandboxId)
      .where("ended_at", "is", null)
      .where("owner", "=", member.id)
      .where("epoch", "=", member.epoch)
      .executeTakeFirst();
    return updated.numUpdatedRows === 1n;
  }

  return {
    isFree: (column) =>
      sql<boolean>`not exists ${db
        .selectFrom("operations")
        .select("operations.id")
        .whereRef("operations.sandbox_id", "=", sql.ref(column))
        .where("operations.ended_at", "is", null)
        .where("operations.owner", "!=", self()?.id ?? "")
        .where(livingOwner(db))}`,

    begin,
    end,

    async moved(session, { id, to, failure }) {
      const aim = AIMS[to];
      if (aim !== undefined) await begin(session, id, aim);
      else if (to === "gone")
        await session.deleteFrom("operations").where("sandbox_id", "=", id).where("ended_at", "is", null).execute();
      else if (!(await end(session, id, failure))) throw new Overtaken();
    },

    async elsewhere(sandboxId) {
      return unfinished(db, sandboxId)
        .select(["operations.id", "aim"])
        .where("owner", "!=", self()?.id ?? "")
        .where(livingOwner(db))
        .executeTakeFirst();
    },

    async outcome(id) {
      const row = await db
        .selectFrom("operations")
        .select(["failure", "ended_at", livingOwner(db).as("lives")])
        .where("operations.id", "=", id)
        .executeTakeFirst();
      if (row?.ended_at === null && row.lives) return "under way";
      return row === undefined || row.failure === null ? undefined : toError(row.failure);
    },

    async take(sandboxId, aim, during) {
      const states = sql.join(during);
      await claim(db, {
        sandboxId,
        aim,
        // The lock waits for a move that is about to end the operation.
        of: sql`from sandboxes where id = ${sandboxId} and state in (${states}) for update`,
      });
    },

    async release(sandboxId, aim) {
      const member = self();
      if (member === undefined) return;
      await db
        .updateTable("operations")
        .set({ owner: "" })
        .where("sandbox_id", "=", sandboxId)
        .where("ended_at", "is", null)
        .where("aim", "=", aim)
        .where("owner", "=", member.id)
        .where("epoch", "=", member.epoch)
        .execute();
    },

    async abandonLapsed() {
      const left = await db
        .updateTable("operations")
        .set({ owner: "" })
        .where("ended_at", "is", null)
        .where("owner", "!=", "")
        .where(sql<boolean>`not ${livingOwner(db)}`)
        .returning("sandbox_id")
        .execute();
      await db
        .updateTable("sandboxes")
        .set({ deadline_at: 0 })
        .where("state", "in", IN_TRANSITION)
        .where((where) =>
          where.or([
            where(
              "id",
              "in",
              left.map(({ sandbox_id: id }) => id),
            ),
            // A version without operations began the transition.
            where.not(
              where.exists(
                where
                  .selectFrom("operations")
                  .select("operations.id")
                  .whereRef("sandbox_id", "=", "sandboxes.id")
                  .where("operations.ended_at", "is", null),
              ),
            ),
          ]),
        )
        .where("deadline_at", "!=", 0)
        .execute();
      await db
        .deleteFrom("operations")
        .where((where) =>
          where.or([
            where("ended_at", "<", sql<number>`${CLOCK} - ${KEPT_MS}`),
            where.and([
              where("begun_at", "<", sql<number>`${CLOCK} - ${LEFT_MS}`),
              where.not(
                where.exists(
                  where
                    .selectFrom("sandboxes")
                    .select("sandboxes.id")
                    .whereRef("sandboxes.id", "=", "operations.sandbox_id")
                    .where((either) =>
                      either.or([either("state", "in", IN_TRANSITION), either("network_change", "is not", null)]),
                    ),
                ),
              ),
            ]),
          ]),
        )
        .execute();
    },
  };
}

function toError(failure: string): AppError {
  const { code, message, details } = JSON.parse(failure) as {
    code: ErrorCode;
    message: string;
    details?: Readonly<Record<string, unknown>>;
  };
  return new AppError(code, message, details === undefined ? {} : { details });
}

/** The only process on its database: nobody else works on anything. */
export const onlyOwn: Operations = {
  isFree: () => sql<boolean>`1 = 1`,
  begin: () => Promise.resolve(),
  end: () => Promise.resolve(true),
  moved: () => Promise.resolve(),
  elsewhere: () => Promise.resolve(undefined),
  outcome: () => Promise.resolve(undefined),
  take: () => Promise.resolve(),
  release: () => Promise.resolve(),
  abandonLapsed: () => Promise.resolve(),
};

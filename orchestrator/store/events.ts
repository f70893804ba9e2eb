/** Lifecycle events, each written in the transaction of its move: exactly once per transition. */

import type { EventType } from "../../shared/api/events.ts";
import { newUuid } from "../../shared/ids.ts";
import type { SandboxRecord } from "./sandboxes/record.ts";
import type { Database, EventRow, Session } from "./tables.ts";

/** The sandbox that an event is about. */
export type EventSubject = Pick<SandboxRecord, "id" | "projectId" | "executionId" | "templateId" | "buildId">;

export interface EventPage {
  readonly offset: number;
  readonly limit: number;
  readonly ascending: boolean;
  readonly sandboxId?: string;
}

export type EventStore = ReturnType<typeof eventStore>;

export function eventStore(db: Database, now: () => number) {
  // Orders events of one millisecond; across replicas the clock decides.
  let last = 0;
  return {
    async add(
      session: Session,
      type: EventType,
      sandbox: EventSubject,
      data?: Readonly<Record<string, unknown>>,
    ): Promise<void> {
      last = Math.max(last + 1, now() * 1000);
      await session
        .insertInto("events")
        .values({
          id: newUuid(),
          sequence: last,
          type: `sandbox.lifecycle.${type}`,
          project_id: sandbox.projectId,
          sandbox_id: sandbox.id,
          execution_id: sandbox.executionId,
          template_id: sandbox.templateId,
          build_id: sandbox.buildId,
          data: data === undefined ? null : JSON.stringify(data),
          created_at: now(),
        })
        .execute();
    },

    async list(projectId: string, page: EventPage): Promise<EventRow[]> {
      let query = db.selectFrom("events").selectAll().where("project_id", "=", projectId);
      if (page.sandboxId !== undefined) query = query.where("sandbox_id", "=", page.sandboxId);
      return query
        .orderBy("sequence", page.ascending ? "asc" : "desc")
        .limit(page.limit)
        .offset(page.offset)
        .execute();
    },

    /** Returns the ids of the executions whose last event among `held` and `released` is `held`. */
    async heldExecutions(executionIds: readonly string[]): Promise<string[]> {
      if (executionIds.length === 0) return [];
      const rows = await db
        .selectFrom("events")
        .select(["execution_id", "type"])
        .where("execution_id", "in", executionIds)
        .where("type", "in", ["sandbox.lifecycle.held", "sandbox.lifecycle.released"])
        .orderBy("sequence", "asc")
        .execute();
      const last = new Map(rows.map((row) => [row.execution_id, row.type]));
      return [...last].filter(([, type]) => type === "sandbox.lifecycle.held").map(([id]) => id);
    },

    async forget(before: number): Promise<void> {
      await db.deleteFrom("events").where("created_at", "<", before).execute();
    },
  };
}

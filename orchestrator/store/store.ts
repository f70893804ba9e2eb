/** The tables together, and the one write that spans two of them: a move and the event that tells of it. */

import type { EventType } from "../../shared/api/events.ts";
import type { SandboxState } from "../../shared/sandbox-state.ts";
import { eventStore } from "./events.ts";
import { keyStore } from "./keys.ts";
import { nodeStore } from "./nodes.ts";
import { projectStore } from "./projects.ts";
import type { MoveSet, SandboxRecord } from "./sandbox-record.ts";
import { type MoveIf, sandboxStore } from "./sandboxes.ts";
import type { Database } from "./tables.ts";
import { templateStore } from "./templates.ts";

export interface Move {
  readonly id: string;
  readonly to: SandboxState;
  readonly when?: MoveIf;
  readonly set?: MoveSet;
}

export interface Told {
  readonly type: EventType;
  readonly data?: Readonly<Record<string, unknown>>;
}

export type Store = ReturnType<typeof createStore>;

export function createStore(db: Database, now: () => number) {
  const sandboxes = sandboxStore(db);
  const events = eventStore(db, now);
  return {
    sandboxes,
    events,
    projects: projectStore(db, now),
    keys: keyStore(db, now),
    templates: templateStore(db, now),
    nodes: nodeStore(db),

    /** The record after the move, or undefined: another state, another execution, or not over yet. */
    async move(move: Move, told?: Told): Promise<SandboxRecord | undefined> {
      if (told === undefined) return sandboxes.move(db, move);
      return db.transaction().execute(async (session) => {
        const moved = await sandboxes.move(session, move);
        if (moved !== undefined) await events.add(session, told.type, moved, told.data);
        return moved;
      });
    },

    /** As `sandboxes.setEnd`, with its event. */
    async setEnd(
      id: string,
      end: { readonly at: number; readonly extendOnly: boolean },
      told: Told,
    ): Promise<SandboxRecord | undefined> {
      return db.transaction().execute(async (session) => {
        const record = await sandboxes.setEnd(session, id, end);
        if (record !== undefined) await events.add(session, told.type, record, told.data);
        return record;
      });
    },
  };
}

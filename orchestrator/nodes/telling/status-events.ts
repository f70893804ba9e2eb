/**
 * Notes what this orchestrator sees of nodes among their events: ready, unreachable, and back. Of several orchestrators that see the
 * same only the first one's is kept, and none is kept that the last event says already.
 */

import type { NodeEventKind } from "../../../shared/api/nodes/node-events.ts";
import type { NodeStatus } from "../../../shared/api/nodes/nodes.ts";
import type { Background } from "../../base/background.ts";
import type { NewNodeEvent } from "../../store/nodes/happening-record.ts";
import type { NodeEventStore } from "../../store/nodes/node-events.ts";

export interface StatusChange {
  readonly nodeId: string;
  readonly from: NodeStatus;
  readonly to: NodeStatus;
  readonly at: number;
  /** Why the node is not reached; undefined: it is. */
  readonly why: string | undefined;
}

interface StatusEventsDeps {
  readonly store: Pick<NodeEventStore, "note">;
  readonly background: Background;
}

/** Events of one transaction. */
const AT_ONCE = 100;
const MOST_CHARACTERS = 500;

/** Returns the function that takes a change. It only remembers it: the write follows, with those that come meanwhile. */
export function createStatusEvents({ store, background }: StatusEventsDeps): (change: StatusChange) => void {
  const waiting: NewNodeEvent[] = [];
  const state = { writing: false };

  async function writeAll(): Promise<void> {
    try {
      // After the work that has found the changes.
      await Promise.resolve();
      while (waiting.length > 0) await store.note(waiting.splice(0, AT_ONCE));
    } finally {
      state.writing = false;
    }
  }

  return (change) => {
    const kinds = eventsOf(change);
    if (kinds.length === 0) return;
    const { nodeId, at, why } = change;
    for (const kind of kinds) {
      const detail = kind === "unreachable" ? why?.slice(0, MOST_CHARACTERS) : undefined;
      waiting.push({ nodeId, kind, at, detail });
    }
    if (state.writing) return;
    state.writing = true;
    background.run("note what happened to nodes", writeAll);
  };
}

const AWAY: ReadonlySet<NodeStatus> = new Set(["connecting", "unhealthy"]);

/** None where an operator has changed it, which is an event of its own, and where nothing is known of the node yet. */
function eventsOf({ from, to, why }: StatusChange): readonly NodeEventKind[] {
  if (AWAY.has(to)) return to === "unhealthy" || (why !== undefined && !AWAY.has(from)) ? ["unreachable"] : [];
  const returned = AWAY.has(from) ? (["returned"] as const) : [];
  return to === "ready" ? [...returned, "ready"] : returned;
}

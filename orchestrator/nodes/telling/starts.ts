/** The starts on each node since the start of the orchestrators: each writes its own from time to time, and tells the sum of all. */

import type { Log } from "../../../shared/program/log.ts";
import { type Loop, loop } from "../../../shared/program/loop.ts";
import type { NodeStarts } from "../../store/nodes/happening-record.ts";
import type { NodeStartsStore } from "../../store/nodes/node-starts.ts";
import { MOST_ERRORS, type NodeView } from "../entry.ts";
import type { Nodes } from "../nodes.ts";

interface ShareStartsDeps {
  readonly nodes: Pick<Nodes, "list">;
  readonly store: Pick<NodeStartsStore, "write" | "forget">;
  readonly log: Log;
  /** For tests. */
  readonly everyMs?: number;
}

const EVERY_MS = 5_000;

/** Begins to write what has changed since the last round. */
export function shareStarts({ nodes, store, log, everyMs = EVERY_MS }: ShareStartsDeps): Pick<Loop, "wake" | "stop"> {
  const written = new Map<string, string>();
  const state = { begun: false };

  async function write(): Promise<void> {
    if (!state.begun) await store.forget();
    state.begun = true;
    const all = nodes.list().map(ownStarts);
    const known = new Set(all.map(({ nodeId }) => nodeId));
    for (const id of written.keys()) if (!known.has(id)) written.delete(id);
    const changed = all.filter((each) => (written.get(each.nodeId) ?? NONE) !== saysOf(each));
    if (changed.length === 0 || !(await store.write(changed))) return;
    for (const each of changed) written.set(each.nodeId, saysOf(each));
  }

  return loop({ name: "starts on nodes", everyMs, log }, write);
}

/** @param others what the other orchestrators have written of the node */
export function allStarts(view: NodeView, others: readonly NodeStarts[] = []): Omit<NodeStarts, "nodeId"> {
  const all = [ownStarts(view), ...others];
  return {
    succeeded: all.reduce((sum, { succeeded }) => sum + succeeded, 0),
    failed: all.reduce((sum, { failed }) => sum + failed, 0),
    errors: all
      .flatMap(({ errors }) => errors)
      .toSorted((a, b) => b.at - a.at)
      .slice(0, MOST_ERRORS),
  };
}

function ownStarts({ id, createSuccesses, createFails, lastErrors }: NodeView): NodeStarts {
  return { nodeId: id, succeeded: createSuccesses, failed: createFails, errors: lastErrors };
}

/** A failure is always counted, so the counts say whether anything has changed. */
function saysOf({ succeeded, failed }: NodeStarts): string {
  return `${succeeded} ${failed}`;
}

const NONE = "0 0";

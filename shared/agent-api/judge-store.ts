/** Decides whether a node serves a store: never one that may not know what the node keeps. Pure; node and orchestrator use it. */

import type { OfferedStore, StoreMark } from "./store-shapes.ts";

/** `unknown`: the node remembers no store, and this one knows none of its sandboxes. `other`: another store. `older`: a copy from before. */
export type StoreRefusal = "unknown" | "other" | "older";

/**
 * Undefined: the node serves it from now on.
 * @param kept number of sandboxes and snapshots on the node: with none there is nothing to lose, and every store will do
 */
export function judgeStore(
  served: StoreMark | undefined,
  offered: OfferedStore,
  kept: number,
): StoreRefusal | undefined {
  if (kept === 0) return undefined;
  // A node of an earlier version has no memory: it serves the store that knows its sandboxes.
  if (served === undefined) return offered.knows > 0 ? undefined : "unknown";
  if (served.storeId !== offered.storeId) return "other";
  if (served.opening === offered.opening) return undefined;
  return offered.reached !== undefined && offered.reached >= served.mark ? undefined : "older";
}

const WHAT: { readonly [Refusal in StoreRefusal]: string } = {
  unknown: "the orchestrator's database has no record of any of them",
  other: "the orchestrator has another database than the one that this node serves",
  older: "the orchestrator's database is older than what this node has seen of it: a restored backup, or a copy",
};

/** The reason with its ways out, for logs, health pages and callers. */
export function refusalText(
  refusal: StoreRefusal,
  { nodeId, kept }: { readonly nodeId: string; readonly kept: number },
) {
  return (
    `node ${nodeId} keeps ${kept} sandboxes and snapshots and takes no work: ${WHAT[refusal]}. Nothing was deleted. ` +
    "Bring the right database back (DATABASE_URL, or svc.db in the orchestrator's directory), " +
    `or run 'scripts/node adopt ${nodeId}' to take them over into this one, ` +
    `or 'scripts/node discard ${nodeId}' to let it hold and later delete what this one does not know`
  );
}

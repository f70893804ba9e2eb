/** For how long a node's sandboxes may run on without another answer. Pure. */

export interface LeaseFacts {
  readonly nodeId: string;
  /** The node's agent API, as it reports it. */
  readonly apiUrl: string;
  readonly nodeIds: readonly string[];
  /** Whether no other orchestrator can use the database. */
  readonly alone: boolean;
  readonly nodeLostMs: number;
}

const LEASE_MS = 30_000;

/**
 * Undefined: nobody could count the node as lost while it runs, or nothing could run its sandboxes instead. That is so for the
 * only node, and for the agent on the machine of the only orchestrator, which no network parts from it: there a control plane
 * that stands still must not stop the work.
 */
export function leaseMs({ nodeId, apiUrl, nodeIds, alone, nodeLostMs }: LeaseFacts): number | undefined {
  const hasOthers = nodeIds.some((id) => id !== nodeId);
  // A node that has joined is met over TLS only.
  const canBeParted = !alone || apiUrl.startsWith("https:");
  if (!hasOthers || !canBeParted) return undefined;
  // The rest of the time is for the freeze, and for a report that was recorded later than it was sent.
  return Math.max(1, Math.min(LEASE_MS, Math.floor(nodeLostMs / 2)));
}

/** For how long a node's sandboxes may run on without another answer. Pure. */

export interface LeaseFacts {
  /** The node's agent API, as it reports it. */
  readonly apiUrl: string;
  /** Whether the platform has another node. */
  readonly hasOthers: boolean;
  /** Whether no other orchestrator can use the database. */
  readonly alone: boolean;
  readonly nodeLostMs: number;
}

const LEASE_MS = 30_000;

/**
 * Returns undefined for the only node of a platform, because no other node could run its sandboxes, and for an agent on the
 * machine of the only orchestrator, because no network parts them: a control plane that stands still must not stop their work.
 */
export function leaseMs({ apiUrl, hasOthers, alone, nodeLostMs }: LeaseFacts): number | undefined {
  // A node that has joined is met over TLS only.
  const canBeParted = !alone || apiUrl.startsWith("https:");
  if (!hasOthers || !canBeParted) return undefined;
  // The rest of the time is for the freeze, and for a report that was recorded later than it was sent.
  return Math.max(1, Math.min(LEASE_MS, Math.floor(nodeLostMs / 2)));
}

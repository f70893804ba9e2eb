/** For how long a node's sandboxes may run on without another answer. Pure. */

export interface LeaseFacts {
  /** The node's agent API, as it reports it. */
  readonly apiUrl: string;
  /** Whether the platform has another node. */
  readonly hasOthers: boolean;
  /** Whether no other orchestrator can use the database. */
  readonly alone: boolean;
  /** Whether the node runs on this machine's kernel. */
  readonly sameHost: boolean;
  /** Addresses of this machine's interfaces, as this process sees them. */
  readonly ownAddresses: () => readonly string[];
  readonly nodeLostMs: number;
}

const LEASE_MS = 30_000;

/**
 * Returns undefined for the only node of a platform, because no other node could run its sandboxes, and for an agent on the
 * machine of the only orchestrator, because no network parts them: a control plane that stands still must not stop their work.
 */
export function leaseMs({ hasOthers, nodeLostMs, ...facts }: LeaseFacts): number | undefined {
  if (!hasOthers || !canBeParted(facts)) return undefined;
  // The rest of the time is for the freeze, and for a report that was recorded later than it was sent.
  return Math.max(1, Math.min(LEASE_MS, Math.floor(nodeLostMs / 2)));
}

/** Whether something can part the node from those who count it as lost. Packets to an address of this machine stay within it. */
function canBeParted({ apiUrl, alone, sameHost, ownAddresses }: Omit<LeaseFacts, "hasOthers" | "nodeLostMs">): boolean {
  if (!alone) return true;
  // Plain HTTP is taken on loopback only.
  if (apiUrl.startsWith("http:")) return false;
  const host = new URL(apiUrl).hostname.replace(/^\[|\]$/g, "");
  // Another network namespace of this kernel is another machine.
  return !(sameHost && ownAddresses().includes(host));
}

/** Certificates of intercepted hosts, signed by the node's authority: made on first use, then cached. */

import { createSecureContext, type SecureContext } from "node:tls";
import { LRUCache } from "lru-cache";
import type { CertificateWithKey } from "../channel/messages.ts";
import { makeLeaf, readSigner } from "./certificates.ts";

const HOUR_MS = 3_600_000;
const BACKDATED_MS = HOUR_MS;
const LIFETIME_MS = 36 * HOUR_MS;
/** A new one is made while the old one is still valid for its users. */
const KEPT_MS = 24 * HOUR_MS;
const MOST = 1_000;

export interface Leaves {
  /** Ready to serve; concurrent callers share one. @param hostname as `hostName` spells it */
  get(hostname: string): Promise<SecureContext>;
}

interface Kept {
  readonly until: number;
  readonly context: Promise<SecureContext>;
}

/** @param now Unix milliseconds */
export function createLeaves(authority: CertificateWithKey, { now = Date.now, most = MOST } = {}): Leaves {
  const signer = readSigner(authority);
  signer.catch(() => undefined);
  const kept = new LRUCache<string, Kept>({ max: most });

  const make = async (hostname: string): Promise<SecureContext> => {
    const from = now() - BACKDATED_MS;
    const leaf = await makeLeaf(await signer, hostname, { from, until: from + LIFETIME_MS });
    return createSecureContext({ cert: leaf.certificate, key: leaf.key, minVersion: "TLSv1.2" });
  };

  return {
    get(hostname) {
      const before = kept.get(hostname);
      if (before !== undefined && before.until > now()) return before.context;
      const entry = { until: now() + KEPT_MS, context: make(hostname) };
      kept.set(hostname, entry);
      entry.context.catch(() => {
        if (kept.peek(hostname) === entry) kept.delete(hostname);
      });
      return entry.context;
    },
  };
}

const known = new WeakMap<CertificateWithKey, Leaves>();

/** The cache of this authority; the same for the same object. */
export function leavesOf(authority: CertificateWithKey): Leaves {
  const leaves = known.get(authority) ?? createLeaves(authority);
  known.set(authority, leaves);
  return leaves;
}

/** Notes when API keys are used: in memory, and at most once a minute for each key in the database, many in one transaction. */

import { LRUCache } from "lru-cache";
import { atMost } from "../../shared/program/at-most.ts";
import type { KeyStore } from "../store/keys/keys.ts";

export interface KeyUses {
  note(keyId: string): void;
  /** Stores every use that the database does not have yet. */
  flush(): Promise<void>;
}

const REMEMBERED = 10_000;
/** Shortest time between two writes of a key's last use. */
const WRITE_EVERY_MS = 60_000;

export function createKeyUses(deps: { readonly keys: Pick<KeyStore, "touch">; readonly now: () => number }): KeyUses {
  const noted = new LRUCache<string, number>(atMost(REMEMBERED));
  let pending = new Map<string, number>();
  return {
    note(keyId) {
      const now = deps.now();
      if (now - (noted.get(keyId) ?? 0) < WRITE_EVERY_MS) return;
      noted.set(keyId, now);
      pending.set(keyId, now);
    },
    async flush() {
      if (pending.size === 0) return;
      const uses = pending;
      pending = new Map();
      await deps.keys.touch(uses);
    },
  };
}

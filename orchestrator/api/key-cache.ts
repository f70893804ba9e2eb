/** Caches the project of each API key until the key is deleted. A deleted key fails before its deletion is answered. */

import { LRUCache } from "lru-cache";
import { hashApiKey } from "../../shared/ids.ts";
import type { Background } from "../background.ts";
import type { KeyOwner, KeyStore } from "../store/keys.ts";

export interface Identity {
  /** Undefined: the key is unknown or revoked. */
  owner(key: string): Promise<KeyOwner | undefined>;
  /** Must be called with the hash of a deleted key, after the deletion. */
  forget(hash: string): void;
}

export interface IdentityDeps {
  readonly keys: Pick<KeyStore, "findOwner" | "touch">;
  readonly background: Background;
  readonly now: () => number;
}

const REMEMBERED = 10_000;
/** Shortest time between two writes of a key's `lastUsed`. */
const TOUCH_EVERY_MS = 60_000;

export function createIdentity(deps: IdentityDeps): Identity {
  const known = new LRUCache<string, KeyOwner>({ max: REMEMBERED });
  const touched = new LRUCache<string, number>({ max: REMEMBERED });
  let generation = 0;

  function touch(keyId: string): void {
    const now = deps.now();
    if (now - (touched.get(keyId) ?? 0) < TOUCH_EVERY_MS) return;
    touched.set(keyId, now);
    deps.background.run("note key use", () => deps.keys.touch(keyId, now));
  }

  return {
    async owner(key) {
      const hash = hashApiKey(key);
      let owner = known.get(hash);
      if (owner === undefined) {
        const before = generation;
        owner = await deps.keys.findOwner(hash);
        // A deletion during the look-up wins: the result of an older read must not be cached.
        if (owner !== undefined && before === generation) known.set(hash, owner);
      }
      if (owner !== undefined) touch(owner.keyId);
      return owner;
    },
    forget(hash) {
      generation++;
      known.delete(hash);
    },
  };
}

/**
 * Caches the owner of each API key until the key is changed or deleted, which takes effect before its answer. A key
 * that has expired is known as such.
 */

import { LRUCache } from "lru-cache";
import { hashApiKey } from "../../shared/ids.ts";
import type { KeyOwner, KeyStore } from "../store/keys/keys.ts";
import type { KeyUses } from "./key-uses.ts";

export interface Identity {
  /** `unknown`: no such key, or it was revoked. */
  owner(key: string): Promise<KeyOwner | "unknown" | "expired">;
  /** Must be called with the hash of a changed or deleted key, after the change. */
  forget(hash: string): void;
  /** Must be called after every change of a project: its standing and limits are cached with its keys. */
  forgetProject(projectId: string): void;
}

export interface IdentityDeps {
  readonly keys: Pick<KeyStore, "findOwner">;
  readonly uses: KeyUses;
  readonly now: () => number;
}

const REMEMBERED = 10_000;

export function createIdentity(deps: IdentityDeps): Identity {
  const known = new LRUCache<string, KeyOwner>({ max: REMEMBERED });
  let generation = 0;

  return {
    async owner(key) {
      const hash = hashApiKey(key);
      let owner = known.get(hash);
      if (owner === undefined) {
        const before = generation;
        owner = await deps.keys.findOwner(hash);
        // A change during the look-up wins: the result of an older read must not be cached.
        if (owner !== undefined && before === generation) known.set(hash, owner);
      }
      if (owner === undefined) return "unknown";
      if (owner.expiresAt !== undefined && owner.expiresAt <= deps.now()) return "expired";
      deps.uses.note(owner.keyId);
      return owner;
    },
    forget(hash) {
      generation++;
      known.delete(hash);
    },
    forgetProject(projectId) {
      generation++;
      for (const [hash, { project }] of known.entries()) if (project.id === projectId) known.delete(hash);
    },
  };
}

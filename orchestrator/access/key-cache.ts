/**
 * Caches the owner of each API key until the key is changed or deleted, which takes effect before its answer. A key
 * that has expired is known as such.
 */

import { LRUCache } from "lru-cache";
import { hashApiKey } from "../../shared/ids.ts";
import { atMost } from "../../shared/program/at-most.ts";
import type { Feed } from "../store/changes/feed.ts";
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
  /** Absent: no other process changes keys. */
  readonly feed?: Pick<Feed, "current" | "on">;
}

const REMEMBERED = 10_000;

export function createIdentity(deps: IdentityDeps): Identity {
  const known = new LRUCache<string, KeyOwner>(atMost(REMEMBERED));
  let generation = 0;

  function forget(hash: string): void {
    generation++;
    known.delete(hash);
  }

  function forgetProject(projectId: string): void {
    generation++;
    for (const [hash, { project }] of known.entries()) if (project.id === projectId) known.delete(hash);
  }

  /** Forgets what other orchestrators have changed. */
  const followed = (one: (subject: string) => void) => (subjects: readonly string[] | undefined) => {
    if (subjects !== undefined) for (const subject of subjects) one(subject);
    else {
      generation++;
      known.clear();
    }
  };
  deps.feed?.on("key", followed(forget));
  deps.feed?.on("project", followed(forgetProject));

  return {
    async owner(key) {
      const hash = hashApiKey(key);
      // Another orchestrator may have revoked it, and this one has not heard of it.
      if (deps.feed?.current === false) known.clear();
      let owner = known.get(hash);
      if (owner === undefined) {
        const before = generation;
        owner = await deps.keys.findOwner(hash);
        // A change during the look-up wins: the result of an older read must not be cached.
        if (owner !== undefined && before === generation && deps.feed?.current !== false) known.set(hash, owner);
      }
      if (owner === undefined) return "unknown";
      if (owner.expiresAt !== undefined && owner.expiresAt <= deps.now()) return "expired";
      deps.uses.note(owner.keyId);
      return owner;
    },
    forget,
    forgetProject,
  };
}

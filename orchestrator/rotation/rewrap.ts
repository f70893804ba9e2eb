/**
 * Wraps the data keys of all secrets with the current key-encryption key, in batches of one transaction each. Every batch
 * that was committed stays, so an interrupted call is continued by the next. It says `done` only when no other key is needed.
 */

import type { secretKeyApi } from "../../shared/api/secrets.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import type { Log } from "../../shared/program/log.ts";
import { instant } from "../forms/time.ts";
import type { Vault } from "../secrets/vault.ts";
import type { SecretStore, WrappedKey } from "../store/secrets/secrets.ts";

export interface RewrapDeps {
  readonly store: SecretStore;
  readonly vault: Vault;
  readonly now: () => number;
  readonly log: Log;
  /** Data keys of one transaction. */
  readonly batch: number;
}

/** Longest work of one call: clients and proxies give up on longer ones. */
const MOST_MS = 30_000;

export function createSecretKeyHandlers({
  store,
  vault,
  now,
  log,
  batch: limit,
}: RewrapDeps): Handlers<typeof secretKeyApi> {
  /** Undefined: the key that wrapped it cannot be used; the keyring has logged the reason. */
  async function rewrapped({ id, ...from }: { readonly id: string } & WrappedKey) {
    try {
      return { id, from, to: await vault.rewrapped(from) };
    } catch {
      return undefined;
    }
  }

  return {
    async rewrapSecrets({ body }) {
      const current = await vault.currentKey();
      // Writes that read the keys before the current one was there may still store a data key under an older one.
      await vault.writesEnded();
      const wrappedBefore = body.wrappedBefore === undefined ? 0 : instant(body.wrappedBefore);
      const until = now() + MOST_MS;
      const counts = { rewrapped: 0, failed: 0 };
      let after = "";
      let complete = false;
      while (!complete && now() < until) {
        const batch = await store.toRewrap({ current, wrappedBefore, after, limit });
        const done = (await Promise.all(batch.map(rewrapped))).filter((one) => one !== undefined);
        counts.failed += batch.length - done.length;
        if (done.length > 0) counts.rewrapped += await store.rewrap(done);
        after = batch.at(-1)?.id ?? after;
        complete = batch.length < limit;
      }
      const stillNeeded = (await store.keysInUse())
        .filter(({ keyId }) => keyId !== current)
        .map(({ keyId, secrets }) => ({ keyID: keyId, secrets }));
      const isCurrent = current === (await vault.currentKey());
      const done = complete && isCurrent && counts.failed === 0 && stillNeeded.length === 0;
      log.info(
        { current, ...counts, stillNeeded, done },
        "the orchestrator encrypted the data keys of secrets with the current key",
      );
      return { currentKeyID: current, ...counts, stillNeeded, done };
    },
  };
}

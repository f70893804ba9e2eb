/**
 * Envelope encryption of values: each version has a random data key, which encrypts the value for the secret's id and
 * version, and which a key-encryption key wraps. A value is in clear only between these functions and their callers.
 */

import { randomBytes } from "node:crypto";
import { AppError } from "../../shared/http/errors.ts";
import { decrypt, encrypt, KEY_BYTES } from "../base/keys/secrets/key-encryption.ts";
import type { SecretKeys } from "../base/keys/secrets/secret-keys.ts";
import type { SealedValue, StoredValue, WrappedKey } from "../store/secrets/secrets.ts";

export type SealFor = (version: { readonly id: string; readonly version: number }) => SealedValue;

export interface Vault {
  /** Calls `write` with a function that seals the value under one new data key; `write` stores what it returns. */
  withNewKey<T>(value: string, write: (seal: SealFor) => Promise<T>): Promise<T>;
  open(stored: StoredValue): Promise<string>;
  /** The same data key under the current key. */
  rewrapped(key: WrappedKey): Promise<WrappedKey>;
  currentKey(): Promise<string>;
  /** Resolves when all writes that were under way have ended: a later one uses the key that is current now, or a newer one. */
  writesEnded(): Promise<void>;
}

/** @param keys undefined: every call is refused, because the operator has set no key */
export function createVault(keys: SecretKeys | undefined): Vault {
  const writing = new Set<Promise<unknown>>();

  function ring(): SecretKeys {
    if (keys !== undefined) return keys;
    throw new AppError("forbidden", "secrets are not set up: the operator sets SVC_SECRETS_KEY_FILE");
  }

  async function write<T>(value: string, store: (seal: SealFor) => Promise<T>): Promise<T> {
    const dataKey = randomBytes(KEY_BYTES);
    const bytes = Buffer.from(value, "utf8");
    try {
      const key = await ring().wrap(dataKey);
      return await store((version) => ({
        ...key,
        value: encrypt(dataKey, bytes, context(version)).toString("base64"),
      }));
    } finally {
      dataKey.fill(0);
      bytes.fill(0);
    }
  }

  return {
    withNewKey(value, store) {
      const written = write(value, store);
      writing.add(written);
      const ended = () => void writing.delete(written);
      written.then(ended, ended);
      return written;
    },

    async open(stored) {
      const dataKey = await ring().unwrap(stored);
      try {
        const bytes = decrypt(dataKey, Buffer.from(stored.value, "base64"), context(stored));
        const value = bytes.toString("utf8");
        bytes.fill(0);
        return value;
      } catch (cause) {
        throw new AppError("internal", "a stored secret is damaged", { cause });
      } finally {
        dataKey.fill(0);
      }
    },

    async rewrapped(key) {
      const dataKey = await ring().unwrap(key);
      try {
        return await ring().wrap(dataKey);
      } finally {
        dataKey.fill(0);
      }
    },

    currentKey: async () => ring().current(),

    async writesEnded() {
      await Promise.allSettled(writing);
    },
  };
}

function context({ id, version }: { readonly id: string; readonly version: number }): string {
  return `secret ${id} version ${version}`;
}

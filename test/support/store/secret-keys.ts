/** Key-encryption keys for tests of secrets, in memory in place of a file. */

import { randomBytes } from "node:crypto";
import { decrypt, encrypt } from "../../../orchestrator/base/keys/secrets/key-encryption.ts";
import type { KeySource } from "../../../orchestrator/base/keys/secrets/secret-keys.ts";

export interface KeysInMemory extends KeySource {
  /** Names of the keys; the first one wraps. */
  names: string[];
  /** Calls since the test began. */
  calls: number;
}

export function keysInMemory(...names: string[]): KeysInMemory {
  const bytes = new Map<string, Buffer>();
  const keyOf = (name: string): Buffer => {
    if (!keys.names.includes(name)) throw new Error(`no key ${name}`);
    const key = bytes.get(name) ?? randomBytes(32);
    bytes.set(name, key);
    return key;
  };
  const keys: KeysInMemory = {
    names,
    calls: 0,
    current: () => Promise.resolve(keys.names[0] ?? ""),
    wrap(dataKey) {
      keys.calls++;
      const [name = ""] = keys.names;
      return Promise.resolve({ name, bytes: encrypt(keyOf(name), dataKey, name) });
    },
    async unwrap(name, wrapped) {
      keys.calls++;
      return Promise.resolve(decrypt(keyOf(name), wrapped, name));
    },
  };
  return keys;
}

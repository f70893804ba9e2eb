/**
 * Encrypts values that must not be readable in a database file: AES-256-GCM under a key of the program that owns it. While a
 * key is replaced, values under earlier keys open too; new ones are closed under the current key only.
 */

import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { SealError } from "./seal-error.ts";

export interface Seal {
  /** `context` is part of the seal: a value sealed for one row does not open in another. */
  close(text: string, context: string): string;
  open(sealed: string, context: string): string;
}

export interface KeyedSeal extends Seal {
  /** What every value begins with that is closed under the current key. */
  readonly prefix: string;
}

/**
 * What a sealed value begins with: `v1:` has no id of its key, and comes from a version that had one key only. A later format
 * gets another prefix, and these stay readable.
 */
const WITHOUT_ID = "v1";
const WITH_ID = "v2";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** False for a text that no version has sealed. */
function isSealed(text: string): boolean {
  return text.startsWith(`${WITHOUT_ID}:`) || text.startsWith(`${WITH_ID}:`);
}

/**
 * @param keyName setting of the key, for the message when a value does not open, which throws a SealError
 * @param previous earlier keys, newest first
 */
export function createSeal(encryptionKey: string, keyName: string, previous: readonly string[] = []): KeyedSeal {
  const keys = new Map([encryptionKey, ...previous].map((key) => [idOf(key), toKey(key)]));
  const [[id, current] = ["", Buffer.alloc(0)]] = keys;
  const prefix = `${WITH_ID}:${id}:`;
  return {
    prefix,
    close(text, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", current, nonce).setAAD(Buffer.from(context));
      const bytes = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return prefix + bytes.toString("base64");
    },
    open(sealed, context) {
      const parts = sealed.split(":", 3);
      const bytes = Buffer.from(parts.at(-1) ?? "", "base64");
      const known = parts.length === (parts[0] === WITH_ID ? 3 : 2) && isSealed(sealed);
      if (!known || bytes.length < NONCE_BYTES + TAG_BYTES) {
        throw new SealError("a sealed value is damaged");
      }
      const named = parts[0] === WITH_ID ? keys.get(parts[1] ?? "") : undefined;
      const candidates = parts[0] === WITH_ID ? [named ?? current] : [...keys.values()];
      let cause: unknown;
      for (const key of candidates) {
        try {
          return decipher(bytes, key, context);
        } catch (error) {
          cause = error;
        }
      }
      throw new SealError(`a sealed value does not open: was the key in ${keyName} changed?`, { cause });
    },
  };
}

function decipher(bytes: Buffer, key: Buffer, context: string): string {
  const opening = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(context))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  const text = opening.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
  return Buffer.concat([text, opening.final()]).toString("utf8");
}

function toKey(encryptionKey: string): Buffer {
  return createHash("sha256").update(encryptionKey).digest();
}

/** Names a key without revealing it: keys are random and long. */
function idOf(encryptionKey: string): string {
  return createHash("sha256").update(`seal key id\n${encryptionKey}`).digest("hex").slice(0, 16);
}

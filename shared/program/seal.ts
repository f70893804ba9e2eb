/** Encrypts values that must not be readable in a database file: AES-256-GCM under a key of the program that owns it. */

import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { AppError } from "../http/errors.ts";

export interface Seal {
  /** `context` is part of the seal: a value sealed for one row does not open in another. */
  close(text: string, context: string): string;
  open(sealed: string, context: string): string;
}

/** Prefix of every sealed value: a later format gets another version, and this one stays readable. */
const VERSION = "v1";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** False for a value from before values were sealed. */
export function isSealed(text: string): boolean {
  return text.startsWith(`${VERSION}:`);
}

/** @param keyName setting of the key, for the message when a value does not open, which throws AppError `internal` */
export function createSeal(encryptionKey: string, keyName: string): Seal {
  const key = createHash("sha256").update(encryptionKey).digest();
  return {
    close(text, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(context));
      const bytes = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return `${VERSION}:${bytes.toString("base64")}`;
    },
    open(sealed, context) {
      const [version, encoded = ""] = sealed.split(":", 2);
      const bytes = Buffer.from(encoded, "base64");
      if (version !== VERSION || bytes.length < NONCE_BYTES + TAG_BYTES) {
        throw new AppError("internal", "a sealed value is damaged");
      }
      const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(-TAG_BYTES));
      try {
        const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
        return Buffer.concat([text, decipher.final()]).toString("utf8");
      } catch (cause) {
        throw new AppError("internal", `a sealed value does not open: was the key in ${keyName} changed?`, { cause });
      }
    },
  };
}

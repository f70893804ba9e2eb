/** What names a key: the SHA-256 of its public half as SPKI, in hexadecimal digits. A new certificate keeps the name of its key. */

import { createHash, createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from "node:crypto";

/** @param certificate PEM, or parsed */
export function digestOf(certificate: string | X509Certificate): string {
  return digestOfPublic((typeof certificate === "string" ? new X509Certificate(certificate) : certificate).publicKey);
}

/** @param key private, PEM */
export function digestOfKey(key: string): string {
  return digestOfPublic(createPublicKey(createPrivateKey(key)));
}

function digestOfPublic(key: KeyObject): string {
  return hex(key.export({ type: "spki", format: "der" }));
}

/** @param spki a public key, DER */
export function hex(spki: Uint8Array): string {
  return createHash("sha256").update(spki).digest("hex");
}

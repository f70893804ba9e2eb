/** Keys and certificates as PEM, ECDSA P-256. All that makes certificates is made of these parts. */

import "reflect-metadata";
import { createPrivateKey, createPublicKey, randomBytes, webcrypto } from "node:crypto";
import { cryptoProvider, PemConverter, X509Certificate } from "@peculiar/x509";

export const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

cryptoProvider.set(webcrypto);

/** From when until when, Unix milliseconds. */
export interface Period {
  readonly from: number;
  readonly until: number;
}

/** A certificate and its private key, PEM. */
export interface CertificateWithKey {
  readonly certificate: string;
  readonly key: string;
}

/** An authority whose certificate and key have been parsed; signs leaves. */
export interface Signer {
  readonly certificate: X509Certificate;
  readonly key: webcrypto.CryptoKey;
}

export async function readSigner({ certificate, key }: CertificateWithKey): Promise<Signer> {
  return { certificate: new X509Certificate(certificate), key: await readPrivateKey(key) };
}

/** What every certificate has: a new serial number, its dates and the algorithm of its signature. */
export function signed({ from, until }: Period) {
  // The serial is positive and has no leading zero.
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  return {
    serialNumber: serial.toString("hex"),
    notBefore: new Date(from),
    notAfter: new Date(until),
    signingAlgorithm: ALGORITHM,
  };
}

export function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
}

/** @param made a certificate or a request for one */
export function pem(made: { toString(format: "pem"): string }): string {
  return `${made.toString("pem").trim()}\n`;
}

export async function privatePem(key: webcrypto.CryptoKey): Promise<string> {
  return `${PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", key), PemConverter.PrivateKeyTag).trim()}\n`;
}

/** @param key private, PEM */
export async function readKeys(key: string): Promise<webcrypto.CryptoKeyPair> {
  const der = createPublicKey(createPrivateKey(key)).export({ type: "spki", format: "der" });
  return {
    privateKey: await readPrivateKey(key),
    publicKey: await webcrypto.subtle.importKey("spki", der, ALGORITHM, true, ["verify"]),
  };
}

function readPrivateKey(text: string): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey("pkcs8", PemConverter.decodeFirst(text), ALGORITHM, false, ["sign"]);
}

/** The certificates of the egress path, ECDSA P-256. The only importer of @peculiar/x509. */

import "reflect-metadata";
import { randomBytes, webcrypto } from "node:crypto";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  cryptoProvider,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import type { CertificateWithKey } from "../channel/messages.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
/** Limit of X.520 for a common name, in characters. */
const LONGEST_COMMON_NAME = 64;

cryptoProvider.set(webcrypto);

/** From when until when, Unix milliseconds. */
export interface Period {
  readonly from: number;
  readonly until: number;
}

/** An authority whose certificate and key have been parsed; signs leaves. */
export interface Signer {
  readonly certificate: X509Certificate;
  readonly key: webcrypto.CryptoKey;
}

/** @param name becomes the common name unchanged, so it must not contain quotes, commas and the like */
export async function makeAuthority(name: string, period: Period): Promise<CertificateWithKey> {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...signed(period),
    name: [{ CN: [name] }],
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: pem(certificate), key: await privatePem(keys.privateKey) };
}

export async function readSigner({ certificate, key }: CertificateWithKey): Promise<Signer> {
  const der = PemConverter.decodeFirst(key);
  return {
    certificate: new X509Certificate(certificate),
    key: await webcrypto.subtle.importKey("pkcs8", der, ALGORITHM, false, ["sign"]),
  };
}

/** The certificate of a server of that name, with everything that strict verifiers (Python's, for one) require. */
export async function makeLeaf(signer: Signer, hostname: string, period: Period): Promise<CertificateWithKey> {
  const keys = await newKeys();
  const named = hostname.length <= LONGEST_COMMON_NAME;
  const extensions: Extension[] = [
    new BasicConstraintsExtension(false, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
    // Without a subject the name here is the only one, and then it has to be critical (RFC 5280 §4.2.1.6).
    new SubjectAlternativeNameExtension([{ type: "dns", value: hostname }], !named),
    await SubjectKeyIdentifierExtension.create(keys.publicKey),
    await AuthorityKeyIdentifierExtension.create(signer.certificate),
  ];
  const certificate = await X509CertificateGenerator.create({
    ...signed(period),
    subject: named ? [{ CN: [hostname] }] : [],
    issuer: signer.certificate.subjectName,
    publicKey: keys.publicKey,
    signingKey: signer.key,
    extensions,
  });
  return { certificate: pem(certificate), key: await privatePem(keys.privateKey) };
}

function signed({ from, until }: Period) {
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

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
}

function pem(certificate: X509Certificate): string {
  return `${certificate.toString("pem").trim()}\n`;
}

async function privatePem(key: webcrypto.CryptoKey): Promise<string> {
  return `${PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", key), PemConverter.PrivateKeyTag).trim()}\n`;
}

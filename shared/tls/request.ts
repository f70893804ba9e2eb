/** A machine's own key, and the request to sign it: the key stays where it was made, the request travels. No I/O. */

import "reflect-metadata";
import { createPublicKey } from "node:crypto";
import {
  PemConverter,
  Pkcs10CertificateRequest,
  Pkcs10CertificateRequestGenerator,
  type PublicKey,
} from "@peculiar/x509";
import { hex } from "./digest.ts";
import { ALGORITHM, newKeys, pem, privatePem, readKeys } from "./x509.ts";

/** Real requests have some 400 bytes. */
const LONGEST_REQUEST = 4096;

/** A new private key, PEM. */
export async function newPrivateKey(): Promise<string> {
  return privatePem((await newKeys()).privateKey);
}

/** The request to sign this key, PEM. It names nobody: the authority decides the name. @param key private, PEM */
export async function requestFor(key: string): Promise<string> {
  const keys = await readKeys(key);
  return pem(await Pkcs10CertificateRequestGenerator.create({ keys, signingAlgorithm: ALGORITHM }));
}

/** @throws RangeError when the text is no request that its own key signed, or the key is of another kind than ours */
export async function readRequest(text: string): Promise<PublicKey> {
  const wrong = (why: string, cause?: unknown) => new RangeError(`the request for a certificate ${why}`, { cause });
  if (text.length > LONGEST_REQUEST) throw wrong(`has more than ${LONGEST_REQUEST} characters`);
  let request: Pkcs10CertificateRequest;
  let valid: boolean;
  try {
    request = new Pkcs10CertificateRequest(PemConverter.decodeFirst(text));
    valid = await request.verify();
  } catch (cause) {
    throw wrong("cannot be read: it has to be PKCS #10 as PEM", cause);
  }
  if (!valid) throw wrong("is not signed by its own key");
  const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey(request.publicKey.toString("pem"));
  if (asymmetricKeyType !== "ec" || asymmetricKeyDetails?.namedCurve !== "prime256v1") {
    throw wrong("has a key of another kind than ECDSA P-256");
  }
  return request.publicKey;
}

/** SHA-256 of the public key that the request is for, as `digestOf` says it of a certificate. @throws as `readRequest` */
export async function digestOfRequest(text: string): Promise<string> {
  return hex(Buffer.from((await readRequest(text)).rawData));
}

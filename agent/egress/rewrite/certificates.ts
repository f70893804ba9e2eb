/** The certificates of the egress path: the node's authority, and a leaf for each host whose TLS is ended. */

import "reflect-metadata";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { newKeys, type Period, pem, privatePem, type Signer, signed } from "../../../shared/tls/x509.ts";
import type { CertificateWithKey } from "../channel/messages.ts";

export { readSigner, type Signer } from "../../../shared/tls/x509.ts";

/** Limit of X.520 for a common name, in characters. */
const LONGEST_COMMON_NAME = 64;

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

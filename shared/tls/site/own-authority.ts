/**
 * An authority of the platform's own for the names of one domain, where no public one can be had: clients of a private network trust
 * its certificate. It can vouch for no other name, so whoever takes it over cannot stand in for other sites. No I/O.
 */

import "reflect-metadata";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { BACKDATED_MS } from "../credentials.ts";
import { type CertificateWithKey, newKeys, pem, privatePem, readSigner, signed } from "../x509.ts";
import { hostOfDomain } from "./certificate.ts";

const DAY_MS = 86_400_000;
const AUTHORITY_MS = 3650 * DAY_MS;
/** Some systems refuse certificates that are valid for longer. */
const CERTIFICATE_MS = 397 * DAY_MS;
const NAME_CONSTRAINTS = "2.5.29.30";

/** @param at unix milliseconds */
export async function makeSiteAuthority(domain: string, at: number): Promise<CertificateWithKey> {
  const host = hostOfDomain(domain);
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...signed({ from: at - BACKDATED_MS, until: at + AUTHORITY_MS }),
    name: [{ CN: [`svc ${host}`.slice(0, 64)] }],
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      new Extension(NAME_CONSTRAINTS, true, onlyBelow(host)),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: pem(certificate), key: await privatePem(keys.privateKey) };
}

/** A certificate for the domain and all names one step below it, with the authority's behind it. */
export async function issueForSite(
  authority: CertificateWithKey,
  domain: string,
  at: number,
): Promise<CertificateWithKey> {
  const host = hostOfDomain(domain);
  const signer = await readSigner(authority);
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.create({
    ...signed({ from: at - BACKDATED_MS, until: at + CERTIFICATE_MS }),
    subject: [{ CN: [`*.${host}`.slice(0, 64)] }],
    issuer: signer.certificate.subjectName,
    publicKey: keys.publicKey,
    signingKey: signer.key,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension([
        { type: "dns", value: host },
        { type: "dns", value: `*.${host}` },
      ]),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(signer.certificate),
    ],
  });
  return { certificate: `${pem(certificate)}${authority.certificate}`, key: await privatePem(keys.privateKey) };
}

/** NameConstraints ::= { permittedSubtrees [0] { { base [2] dNSName } } } (RFC 5280 §4.2.1.10); a host has at most 253 bytes. */
function onlyBelow(host: string): Uint8Array {
  const wrapped = (tag: number, content: Uint8Array) =>
    Buffer.concat([Buffer.from([tag, ...lengthOf(content)]), content]);
  const name = wrapped(0x82, Buffer.from(host, "ascii"));
  return wrapped(0x30, wrapped(0xa0, wrapped(0x30, name)));
}

function lengthOf({ length }: Uint8Array): readonly number[] {
  return length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}

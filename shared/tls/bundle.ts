/**
 * The authorities that a program trusts, as one PEM text. There is one; while it is replaced there are two, and the one that has
 * signed the program's own certificate comes first. No I/O.
 */

import { X509Certificate } from "node:crypto";
import { digestOf } from "./digest.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Each as PEM. */
export function authoritiesIn(bundle: string): string[] {
  return (bundle.match(CERTIFICATE) ?? []).map((each) => `${each}\n`);
}

export function digestsIn(bundle: string): string[] {
  return authoritiesIn(bundle).map(digestOf);
}

/** The authority of the bundle that has signed the certificate, PEM; undefined: none of them. */
export function issuerIn(bundle: string, certificate: string): string | undefined {
  const read = new X509Certificate(certificate);
  return authoritiesIn(bundle).find((each) => {
    const issuer = new X509Certificate(each);
    return read.checkIssued(issuer) && read.verify(issuer.publicKey);
  });
}

/** The same authorities, that of the certificate first: earlier versions look at the first one alone. */
export function withIssuerFirst(bundle: string, certificate: string): string {
  const issuer = issuerIn(bundle, certificate);
  const others = authoritiesIn(bundle).filter((each) => each !== issuer);
  return [...(issuer === undefined ? [] : [issuer]), ...others].join("");
}

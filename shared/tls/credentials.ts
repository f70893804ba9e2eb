/** What a machine shows to others: whether it can be used, until when, and when it has to be renewed. No I/O. */

import { createPrivateKey, X509Certificate } from "node:crypto";
import { issuerIn } from "./bundle.ts";
import { digestOf } from "./digest.ts";
import { nameIn } from "./names.ts";
import type { CertificateWithKey } from "./x509.ts";

/** How far the clock of a machine may be behind the orchestrator's: certificates are valid from that long before. */
export const BACKDATED_MS = 3_600_000;

/** A key, its certificate, and the authorities that both sides trust (`bundle.ts`); PEM. */
export interface Credentials extends CertificateWithKey {
  readonly authority: string;
}

/** What a certificate says. */
interface CertificateFacts {
  /** Undefined: it is none of the platform's certificates. */
  readonly name: string | undefined;
  readonly digest: string;
  /** Unix milliseconds. */
  readonly from: number;
  readonly until: number;
}

/** @param certificate PEM */
export function factsOf(certificate: string): CertificateFacts {
  const read = new X509Certificate(certificate);
  return {
    name: nameIn(read.subjectAltName),
    digest: digestOf(read),
    from: Date.parse(read.validFrom),
    until: Date.parse(read.validTo),
  };
}

/** When a third of the time is left, so that an orchestrator may be away for a day. Unix milliseconds. */
export function renewalAt({ from, until }: Pick<CertificateFacts, "from" | "until">): number {
  return until - (until - from - BACKDATED_MS) / 3;
}

/**
 * Why these credentials cannot be used, with the way out; undefined: they can.
 * @param as the name that the certificate must have
 */
export function problemOf(
  { authority, certificate, key }: Credentials,
  { as, at }: { readonly as: string; readonly at: number },
): string | undefined {
  let read: X509Certificate;
  try {
    read = new X509Certificate(certificate);
    if (!read.checkPrivateKey(createPrivateKey(key))) {
      return "the key is not that of the certificate: join the platform again with a new token";
    }
    if (issuerIn(authority, certificate) === undefined) {
      return "the certificate is of another authority: join the platform again with a new token";
    }
  } catch {
    return "the key, the certificate or the authority cannot be read: join the platform again with a new token";
  }
  const { name, from, until } = factsOf(certificate);
  if (name !== as) {
    return `the certificate is of ${name ?? "nobody that the platform names"}, not of ${as}: join the platform again under this name`;
  }
  if (at < from) {
    return `the certificate is valid from ${iso(from)}, and this machine's clock says ${iso(at)}: set the clock (timedatectl set-ntp true)`;
  }
  if (at > until) {
    return `the certificate ended at ${iso(until)}, and this machine's clock says ${iso(at)}: set the clock if it is wrong, otherwise join the platform again with a new token`;
  }
  return undefined;
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

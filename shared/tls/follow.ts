/** How a machine that has joined follows the authorities of its platform, while one is replaced by another. Pure. */

import { digestsIn, issuerIn, withIssuerFirst } from "./bundle.ts";
import type { Credentials } from "./credentials.ts";
import { digestOf } from "./digest.ts";

/** What the platform trusts, and the digest of the authority that signs. */
export interface ToldAuthorities {
  /** PEM. */
  readonly trusted: readonly string[];
  readonly issuer: string;
}

export interface FollowStep {
  /** With the platform's authorities; undefined: they are the same. */
  readonly credentials: Credentials | undefined;
  /** The certificate is of another authority than the one that signs now. */
  readonly renew: boolean;
}

/** What the machine does about the authorities that it is told. */
export function followStep(own: Credentials, { trusted, issuer }: ToldAuthorities): FollowStep {
  const signer = issuerIn(own.authority, own.certificate);
  const renew = signer === undefined || digestOf(signer) !== issuer;
  const told = new Set(trusted.map(digestOf));
  // An authority is dropped when nothing of it is in use: not before this certificate is of another one.
  const kept = renew && signer !== undefined && !told.has(digestOf(signer)) ? [signer] : [];
  const authority = withIssuerFirst([...trusted, ...kept].join(""), own.certificate);
  const before = digestsIn(own.authority);
  const after = digestsIn(authority);
  const isSame = before.length === after.length && after.every((digest) => before.includes(digest));
  return { credentials: isSame ? undefined : { ...own, authority }, renew };
}

/** What the machine says of itself: digests. */
export function saidBy({ authority, certificate }: Credentials): { trusted: string[]; issuer: string } {
  const issuer = issuerIn(authority, certificate);
  return { trusted: digestsIn(authority), issuer: issuer === undefined ? "" : digestOf(issuer) };
}

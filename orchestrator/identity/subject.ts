/** SPIFFE ids, and the trust domain when none is set. Pure. */

import { AppError } from "../../shared/http/errors.ts";

const TRUST_DOMAIN = /^[a-z0-9._-]{1,255}$/;
const SEGMENT = /^(?!\.{1,2}$)[a-zA-Z0-9._-]+$/;
const MAX_BYTES = 2048;

/** @throws {AppError} internal when the parts make no SPIFFE id */
export function spiffeId(trustDomain: string, segments: readonly string[]): string {
  const id = `spiffe://${[trustDomain, ...segments].join("/")}`;
  const valid = TRUST_DOMAIN.test(trustDomain) && segments.length > 0 && segments.every((each) => SEGMENT.test(each));
  if (!valid || id.length > MAX_BYTES) throw new AppError("internal", `${id.slice(0, 256)} is no SPIFFE id`);
  return id;
}

/** The host of the issuer, with every character that a trust domain must not have replaced. */
export function trustDomainOf(issuer: string): string {
  const { hostname } = new URL(issuer);
  return (
    hostname
      .toLowerCase()
      .replaceAll(/[^a-z0-9._-]+/g, "-")
      .replaceAll(/^-+|-+$/g, "")
      .slice(0, 255) || "localhost"
  );
}

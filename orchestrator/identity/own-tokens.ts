/** Tokens that this platform signs for itself with a secret key, and verifies itself; no other program does. */

import { jwtVerify, SignJWT } from "jose";

const ALGORITHM = "HS256";

export interface OwnClaims {
  readonly issuer: string;
  readonly audience: string;
  readonly subject: string;
  readonly id: string;
  readonly issuedAtS: number;
  readonly expiresAtS: number;
  readonly more: Readonly<Record<string, string>>;
}

export function signOwnToken(key: Uint8Array, claims: OwnClaims): Promise<string> {
  return new SignJWT({ ...claims.more })
    .setProtectedHeader({ alg: ALGORITHM })
    .setIssuer(claims.issuer)
    .setAudience(claims.audience)
    .setSubject(claims.subject)
    .setJti(claims.id)
    .setIssuedAt(claims.issuedAtS)
    .setExpirationTime(claims.expiresAtS)
    .sign(key);
}

/** The claims of a token that the key has signed for this issuer and audience. @throws when it is another one, or has expired */
export async function readOwnToken(
  key: Uint8Array,
  token: string,
  { issuer, audience, nowMs }: { readonly issuer: string; readonly audience: string; readonly nowMs: number },
): Promise<Readonly<Record<string, unknown>>> {
  const options = { algorithms: [ALGORITHM], issuer, audience, currentDate: new Date(nowMs) };
  return (await jwtVerify(token, key, options)).payload;
}

/** Reads signed file URLs, which name no sandbox, and finds the sandbox whose token made the signature. Pure. */

import { fileSignature, sameSecret } from "../../shared/ids.ts";

const SIGNATURE = /^v1_[A-Za-z0-9+/]{43}$/;

export interface Signed {
  readonly signature: string;
  readonly path: string;
  readonly operation: "read" | "write";
  readonly username: string;
  readonly expiration: string | undefined;
}

/** The signed request, or undefined when the URL is not signed. */
export function readSigned(method: string, url: string): Signed | undefined {
  const mark = url.indexOf("?");
  if (mark < 0 || url.slice(0, mark) !== "/files") return undefined;
  const query = new URLSearchParams(url.slice(mark + 1));
  const signature = query.get("signature");
  if (signature === null) return undefined;
  return {
    signature,
    path: query.get("path") ?? "",
    operation: method === "GET" || method === "HEAD" ? "read" : "write",
    username: query.get("username") ?? "",
    expiration: query.get("signature_expiration") ?? undefined,
  };
}

/**
 * The route whose token validates the signature; envd itself checks the expiry, in its own words. Compares in constant
 * time. About 2 µs per sandbox, so 1 000 sandboxes cost 2 ms; a malformed signature costs nothing.
 */
export function findSigner<Route extends { readonly envdAccessToken: string }>(
  signed: Signed,
  running: Iterable<Route>,
): Route | undefined {
  if (!SIGNATURE.test(signed.signature)) return undefined;
  const { path, operation, username, expiration } = signed;
  for (const route of running) {
    const expected = fileSignature({ path, operation, username, token: route.envdAccessToken, expiration });
    if (sameSecret(signed.signature, expected)) return route;
  }
  return undefined;
}

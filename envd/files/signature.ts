/** Pure: signed file URLs. */

import { AppError } from "../../shared/http/errors.ts";
import { lateCrypto } from "../runtime/late-builtins.ts";

export type FileOperation = "read" | "write";

export interface SignedRequest {
  /** As the caller wrote it, not resolved. */
  readonly path: string;
  readonly operation: FileOperation;
  /** As the caller wrote it; empty when not given. */
  readonly username: string;
  readonly signature: string | undefined;
  /** Unix seconds, as written in the URL. */
  readonly expiration: string | undefined;
}

type Signed = Pick<SignedRequest, "path" | "operation" | "username" | "expiration">;

export function signFile({ path, operation, username, expiration }: Signed, token: string): string {
  const text = [path, operation, username, token, ...(expiration === undefined ? [] : [expiration])].join(":");
  return `v1_${lateCrypto().createHash("sha256").update(text).digest("base64").replace(/=+$/, "")}`;
}

/** @throws {AppError} unauthorized: the signature is missing, wrong, or (only when it is right) expired */
export function checkSignature(request: SignedRequest, token: string, nowMs: number): void {
  const { signature, expiration } = request;
  if (signature === undefined || signature === "")
    throw new AppError("unauthorized", "missing signature query parameter");
  if (!equalText(signature, signFile(request, token))) throw new AppError("unauthorized", "invalid signature");
  if (expiration === undefined) return;
  // The owner of the token wrote and signed it, but a word such as "now" would otherwise never expire.
  if (!/^-?\d{1,15}$/.test(expiration)) throw new AppError("unauthorized", "invalid signature expiration");
  if (Number(expiration) < Math.floor(nowMs / 1_000))
    throw new AppError("unauthorized", "signature is already expired");
}

/** In constant time for texts of one length. */
export function equalText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  if (left.length !== right.length) return false;
  let difference = 0;
  for (const [index, byte] of left.entries()) difference |= byte ^ (right[index] ?? 0);
  return difference === 0;
}

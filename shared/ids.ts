/** Identifiers: how each is made and recognised. */

import { createHash, createHmac, randomBytes, randomInt, randomUUID, timingSafeEqual } from "node:crypto";

const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

/** `i` + 19 of [a-z0-9]: also a DNS label. */
export function newSandboxId(): string {
  return `i${letters(19)}`;
}

/** New for every start of a container; late messages name it, so that they cannot affect a newer start. */
export function newExecutionId(): string {
  return randomUUID();
}

export function newTemplateId(): string {
  return letters(20);
}

export function newProjectId(): string {
  return `prj_${letters(20)}`;
}

export function newSecretId(): string {
  return `sec_${letters(24)}`;
}

export function newWorkspaceId(): string {
  return `wrk_${letters(20)}`;
}

export function newUuid(): string {
  return randomUUID();
}

/** `svc_` + 40 hex digits (20 random bytes). */
export function newApiKey(): string {
  return `svc_${randomBytes(20).toString("hex")}`;
}

/** `id` or `id-clientID` → id; undefined when it is not a sandbox id. */
export function parseSandboxId(text: string): string | undefined {
  const id = text.split("-", 1)[0] ?? "";
  return /^[a-z0-9]{1,64}$/.test(id) ? id : undefined;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** Well-formed, not necessarily known. Both prefixes are accepted. */
export function isApiKey(text: string): boolean {
  return /^(svc|e2b)_[0-9a-f]{40}$/.test(text);
}

export function hashApiKey(key: string): string {
  return createHash("sha256")
    .update(key.slice(key.indexOf("_") + 1))
    .digest("base64");
}

/** Token that envd requires: stable over pause and resume, different per fork. */
export function envdToken(seed: string, sandboxId: string): string {
  return createHmac("sha256", seed).update(sandboxId).digest("hex");
}

/** The token that opens non-envd ports when `allowPublicTraffic` is false. */
export function trafficToken(seed: string, sandboxId: string): string {
  return createHmac("sha256", seed).update(`sandbox-traffic-${sandboxId}`).digest("hex");
}

/** Constant time for equal lengths; lengths are not secret. */
export function sameSecret(given: string, expected: string): boolean {
  const a = Buffer.from(given);
  const b = Buffer.from(expected);
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Signature of a file URL. `expiration` is unix seconds, as the client wrote it. */
export function fileSignature(parts: {
  readonly path: string;
  readonly operation: "read" | "write";
  readonly username: string;
  readonly token: string;
  readonly expiration?: string | undefined;
}): string {
  const { path, operation, username, token, expiration } = parts;
  const text = [path, operation, username, token, ...(expiration === undefined ? [] : [expiration])].join(":");
  return `v1_${createHash("sha256").update(text).digest("base64").replaceAll("=", "")}`;
}

/**
 * Signature of the URL that the files of a COPY step are uploaded to: the URL is the permission and needs no key.
 * `expiresAt` is unix seconds.
 */
export function uploadSignature(
  seed: string,
  upload: { readonly templateId: string; readonly hash: string; readonly expiresAt: number },
): string {
  const text = `template-files-${upload.templateId}-${upload.hash}-${upload.expiresAt}`;
  return createHmac("sha256", seed).update(text).digest("base64url");
}

function letters(count: number): string {
  return Array.from({ length: count }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");
}

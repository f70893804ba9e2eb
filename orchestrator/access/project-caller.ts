/** The caller of a project's routes: the project, and the credential that proved the right to it. */

import { AppError } from "../../shared/http/errors.ts";
import type { Scope } from "../../shared/http/scopes.ts";
import type { KeyOwner } from "../store/keys/keys.ts";
import type { Project } from "../store/projects/record.ts";

/** `admin`: an operator who named the project; it may do everything there. `person`: somebody who has logged in by name. */
type Credential =
  | { readonly kind: "admin" }
  | ({ readonly kind: "key" } & Omit<KeyOwner, "project">)
  | ({ readonly kind: "person" } & Pick<KeyOwner, "mask" | "scopes" | "expiresAt">);

export interface ProjectCaller extends Project {
  readonly credential: Credential;
}

/** The name of the caller in records: `admin`, the mask of its key, or the person's name. */
export function nameOf({ credential }: ProjectCaller): string {
  return credential.kind === "admin" ? "admin" : credential.mask;
}

export function hasScope({ credential }: ProjectCaller, scope: Scope): boolean {
  return credential.kind === "admin" || credential.scopes.includes(scope);
}

/**
 * A key gives no key more than it has itself: neither a scope nor a longer life. Otherwise a key that is limited could
 * make one that is not.
 * @throws {AppError} forbidden
 */
export function checkGrant(
  { credential }: ProjectCaller,
  granted: { readonly scopes?: readonly Scope[] | undefined; readonly expiresAt?: number | undefined },
): void {
  if (credential.kind === "admin") return;
  const missing = granted.scopes?.find((scope) => !credential.scopes.includes(scope));
  if (missing !== undefined) {
    throw new AppError("forbidden", `this API key cannot give the scope '${missing}', which it lacks`);
  }
  const { expiresAt: end } = credential;
  if (end !== undefined && "expiresAt" in granted && (granted.expiresAt === undefined || granted.expiresAt > end)) {
    throw new AppError(
      "forbidden",
      `this API key expires at ${new Date(end).toISOString()}: name an 'expiresAt' of the new key that is not later`,
    );
  }
}

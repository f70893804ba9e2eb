/** Whose credentials a caller of the console has, and what somebody who has logged in by name may do in which projects. */

import type { FastifyRequest } from "fastify";
import { AppError } from "../../shared/http/errors.ts";
import type { Scope } from "../../shared/http/scopes.ts";
import { identify } from "../callers/caller.ts";
import type { KeyOwner } from "../store/keys/keys.ts";
import { isProject } from "../store/projects/projects.ts";
import type { Project } from "../store/projects/record.ts";
import type { ProjectCaller } from "./project-caller.ts";

export type Owner =
  | { readonly kind: "admin" }
  | { readonly kind: "key"; readonly owner: KeyOwner }
  | { readonly kind: "person"; readonly person: Person };

export interface Person {
  /** The provider's own, for records. */
  readonly subject: string;
  readonly name: string;
  /** At least one. */
  readonly grants: readonly { readonly project: Project; readonly scopes: readonly Scope[] }[];
}

/** Names the caller of a log-in or log-out. Returns the owner's name in the counters of limits. */
export function identifyOwner(request: FastifyRequest, owner: Owner): string {
  switch (owner.kind) {
    case "admin":
      identify(request, { kind: "admin" });
      return "admin";
    case "key": {
      const { keyId, mask, project } = owner.owner;
      identify(request, { kind: "key", keyId, mask, projectId: project.id });
      return `key ${keyId}`;
    }
    case "person": {
      const { subject, name, grants } = owner.person;
      const [only, ...more] = grants;
      const inOne = only !== undefined && more.length === 0 ? { projectId: only.project.id } : {};
      identify(request, { kind: "person", personId: subject, mask: name, ...inOne });
      return `person ${subject}`;
    }
  }
}

/**
 * The caller in the project that the request names, or in the person's only one.
 * @throws {AppError} bad_request, forbidden
 */
export function personIn(request: FastifyRequest, person: Person, asked: string | undefined): ProjectCaller {
  const { subject, name, grants } = person;
  const who = { kind: "person", personId: subject, mask: name } as const;
  identify(request, who);
  if (asked === undefined && grants.length > 1)
    throw new AppError("bad_request", "header X-Team-ID is required: this log-in has several projects");
  const grant = asked === undefined ? grants[0] : grants.find(({ project }) => isProject(project, asked));
  if (grant === undefined) throw new AppError("forbidden", "project not found, or no access to it");
  identify(request, { ...who, projectId: grant.project.id });
  return { ...grant.project, credential: { kind: "person", mask: name, scopes: grant.scopes, expiresAt: undefined } };
}

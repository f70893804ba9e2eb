/** Who has logged in by OpenID Connect, as a session keeps it, and what that is worth by the rules of now. */

import { AppError } from "../../../shared/http/errors.ts";
import type { Person } from "../../access/person.ts";
import type { ProjectStore } from "../../store/projects/projects.ts";
import { grantsOf, type Rule, valuesOf } from "./roles.ts";

/** The values of the claim, not the roles: the rules may change while the session lives. */
interface Kept {
  readonly subject: string;
  readonly name: string;
  readonly values: readonly string[];
}

export interface PeopleDeps {
  readonly projects: Pick<ProjectStore, "find" | "findBySlug">;
  readonly rules: readonly Rule[];
  readonly claim: string;
}

const MOST_NAME = 128;

export interface People {
  /** What a session keeps of these claims: only the values that a rule names. */
  keep(claims: Readonly<Record<string, unknown>> & { readonly sub: string }): string;
  /** @throws {AppError} forbidden: no rule gives a role of a project that exists */
  read(kept: string): Promise<Person>;
}

export function createPeople({ projects, rules, claim }: PeopleDeps): People {
  const known = new Set(rules.map(({ value }) => value));
  return {
    keep(claims) {
      const values = valuesOf(claims, claim).filter((value) => known.has(value));
      return JSON.stringify({ subject: claims.sub, name: nameOf(claims), values } satisfies Kept);
    },
    async read(kept) {
      const { subject, name, values } = JSON.parse(kept) as Kept;
      const found = await Promise.all(
        grantsOf(rules, values).map(async ({ project: named, scopes }) => {
          const project = (await projects.findBySlug(named)) ?? (await projects.find(named));
          return project === undefined || project.status === "deleting" ? [] : [{ project, scopes }];
        }),
      );
      const grants = found.flat();
      if (grants.length === 0)
        throw new AppError(
          "forbidden",
          `${name} has no role in a project: no value of '${claim}' is in SVC_OIDC_ROLES`,
        );
      return { subject, name, grants };
    },
  };
}

/** For people and the audit log. An address that the provider has not verified may be somebody else's. */
function nameOf(claims: Readonly<Record<string, unknown>> & { readonly sub: string }): string {
  const email = claims["email_verified"] === true ? claims["email"] : undefined;
  const names = [email, claims["preferred_username"], claims["name"], claims.sub];
  const name = names.find((each): each is string => typeof each === "string" && each.trim() !== "") ?? claims.sub;
  return name.slice(0, MOST_NAME);
}

/** Who has logged in by OpenID Connect, as a session keeps it, and what that is worth by the rules of now. */

import { AppError } from "../../../shared/http/errors.ts";
import type { Scope } from "../../../shared/http/scopes.ts";
import type { Person } from "../../access/owner.ts";
import type { ProjectStore } from "../../store/projects/projects.ts";
import type { Project } from "../../store/projects/record.ts";
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
  /** Who that is, whatever they may do. */
  who(kept: string): Pick<Person, "subject" | "name">;
  /** @throws {AppError} forbidden: no rule gives a role of a project that exists */
  read(kept: string): Promise<Person>;
  /** Who may do what in one project. */
  rulesOf(projectId: string): Promise<ProjectRules>;
}

interface ProjectRules {
  readonly claim: string;
  readonly rules: readonly Rule[];
  /** None: somebody of whom a session keeps this has no role in the project. */
  readonly scopesOf: (kept: string) => readonly Scope[];
}

export function createPeople({ projects, rules, claim }: PeopleDeps): People {
  const known = new Set(rules.map(({ value }) => value));

  /** @param named as a rule names it */
  async function projectOf(named: string): Promise<Project | undefined> {
    const project = (await projects.findBySlug(named)) ?? (await projects.find(named));
    return project?.status === "deleting" ? undefined : project;
  }

  return {
    keep(claims) {
      const values = valuesOf(claims, claim).filter((value) => known.has(value));
      return JSON.stringify({ subject: claims.sub, name: nameOf(claims), values } satisfies Kept);
    },
    who: (kept) => keptOf(kept),
    async read(kept) {
      const { subject, name, values } = keptOf(kept);
      const found = await Promise.all(
        grantsOf(rules, values).map(async ({ project: named, scopes }) => {
          const project = await projectOf(named);
          return project === undefined ? [] : [{ project, scopes }];
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
    async rulesOf(projectId) {
      const names = [...new Set(rules.map(({ project }) => project))];
      const found = await Promise.all(
        names.map(async (name) => ((await projectOf(name))?.id === projectId ? [name] : [])),
      );
      const own = rules.filter(({ project }) => found.flat().includes(project));
      return {
        claim,
        rules: own,
        scopesOf: (kept) => [...new Set(grantsOf(own, keptOf(kept).values).flatMap(({ scopes }) => scopes))],
      };
    },
  };
}

function keptOf(kept: string): Kept {
  return JSON.parse(kept) as Kept;
}

/** For people and the audit log. An address that the provider has not verified may be somebody else's. */
function nameOf(claims: Readonly<Record<string, unknown>> & { readonly sub: string }): string {
  const email = claims["email_verified"] === true ? claims["email"] : undefined;
  const names = [email, claims["preferred_username"], claims["name"], claims.sub];
  const name = names.find((each): each is string => typeof each === "string" && each.trim() !== "") ?? claims.sub;
  return name.slice(0, MOST_NAME);
}

/** What people may do: which roles of which projects the values of a claim give, by the rules of the settings. Pure. */

import type { Scope } from "../../../shared/http/scopes.ts";
import { ConfigError } from "../../../shared/program/config.ts";

/** A role is a name for scopes of API keys: nothing else decides what somebody may do. */
const ROLES = {
  viewer: ["read"],
  member: ["read", "sandboxes", "templates"],
  admin: ["read", "sandboxes", "templates", "admin"],
} as const satisfies Readonly<Record<string, readonly Scope[]>>;
type Role = keyof typeof ROLES;

export interface Rule {
  readonly value: string;
  /** Slug or id of a project. */
  readonly project: string;
  readonly role: Role;
}

/** What a rule set gives somebody in one project. */
export interface Grant {
  readonly project: string;
  readonly scopes: readonly Scope[];
}

/** Claims have more values than anybody needs rules for; a provider that sends thousands must not cost thousands of rows. */
const MOST_VALUES = 1_000;
const MOST_RULES = 256;

/**
 * `VALUE=PROJECT:ROLE`, separated by semicolons. A value may have an equals sign itself, as names of directories have.
 * @throws {ConfigError}
 */
export function readRules(text: string): readonly Rule[] {
  const rules = text
    .split(";")
    .map((rule) => rule.trim())
    .filter((rule) => rule !== "")
    .map((rule) => {
      const [, value = "", project = "", role = ""] = /^(.+)=([A-Za-z0-9_-]+):(\w+)$/.exec(rule) ?? [];
      if (value === "" || !isRole(role))
        throw new ConfigError([
          `SVC_OIDC_ROLES: '${rule}' must be VALUE=PROJECT:ROLE, with a role of ${Object.keys(ROLES).join(", ")}`,
        ]);
      return { value: value.trim(), project: project.toLowerCase(), role };
    });
  if (rules.length > MOST_RULES)
    throw new ConfigError([`SVC_OIDC_ROLES has ${rules.length} rules, at most 256 are read`]);
  return rules;
}

/** Texts of the claim, which may be a path into objects; none where it is absent or something else. */
export function valuesOf(claims: Readonly<Record<string, unknown>>, claim: string): readonly string[] {
  // An address that the provider has not verified is whatever somebody has typed there.
  if (claim === "email" && claims["email_verified"] !== true) return [];
  const found = Object.hasOwn(claims, claim) ? claims[claim] : claim.split(".").reduce<unknown>(memberOf, claims);
  const texts = (Array.isArray(found) ? (found as unknown[]) : [found]).filter((each) => typeof each === "string");
  return texts.slice(0, MOST_VALUES);
}

function memberOf(object: unknown, name: string): unknown {
  if (typeof object !== "object" || object === null || !Object.hasOwn(object, name)) return undefined;
  return (object as Readonly<Record<string, unknown>>)[name];
}

/** One grant for each project, with the scopes of every role there. */
export function grantsOf(rules: readonly Rule[], values: readonly string[]): readonly Grant[] {
  const matching = rules.filter(({ value }) => values.includes(value));
  return [...new Set(matching.map(({ project }) => project))].map((project) => ({
    project,
    scopes: [
      ...new Set(
        matching.filter((rule) => rule.project === project).flatMap(({ role }): readonly Scope[] => ROLES[role]),
      ),
    ],
  }));
}

function isRole(text: string): text is Role {
  return Object.hasOwn(ROLES, text);
}

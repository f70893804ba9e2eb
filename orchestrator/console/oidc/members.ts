/** The people of a project: which values of the claim give which role in it, and who is logged in by one. */

import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { nullable, Timestamp } from "../../../shared/api/common.ts";
import { contract, type Handlers } from "../../../shared/http/contract.ts";
import { SCOPES } from "../../../shared/http/scopes.ts";
import { serve } from "../../../shared/http/serve.ts";
import type { Auth } from "../../access/auth.ts";
import type { ProjectCaller } from "../../access/project-caller.ts";
import { iso } from "../../forms/time.ts";
import type { SessionStore } from "../../store/sessions/sessions.ts";
import type { People } from "./people.ts";

const membersApi = contract({
  readMembers: {
    method: "GET",
    path: "/members",
    summary: "Who may do what in the project by name, and who is logged in",
    tag: "Projects",
    access: "project",
    // Names of people are more than a reader of sandboxes needs.
    scope: "admin",
    status: 200,
    reply: Type.Object({
      claim: nullable(Type.String({ description: "null: nobody logs in by name" })),
      rules: Type.Array(Type.Object({ value: Type.String(), role: Type.String() })),
      people: Type.Array(
        Type.Object({
          subject: Type.String(),
          name: Type.String(),
          scopes: Type.Array(Type.Enum([...SCOPES])),
          sessions: Type.Integer(),
          loggedInAt: Timestamp,
          lastUsedAt: Timestamp,
        }),
        { description: "Who has logged in and not out, the last ones first" },
      ),
    }),
    errors: [401, 403],
  },
});

interface MembersDeps {
  /** Undefined: nobody logs in by name. */
  readonly people: Pick<People, "rulesOf" | "who"> | undefined;
  readonly sessions: Pick<SessionStore, "people">;
}

export function addMembers(
  server: FastifyInstance,
  auth: Pick<Auth, "project">,
  { people, sessions }: MembersDeps,
): void {
  const handlers: Handlers<typeof membersApi, ProjectCaller> = {
    async readMembers(_input, { caller }) {
      if (people === undefined) return { claim: null, rules: [], people: [] };
      const { claim, rules, scopesOf } = await people.rulesOf(caller.id);
      const found = new Map<string, Member>();
      for (const { person = "", createdAt, usedAt } of await sessions.people()) {
        const scopes = [...scopesOf(person)];
        if (scopes.length === 0) continue;
        const { subject, name } = people.who(person);
        const before = found.get(subject);
        // The newest use comes first.
        if (before === undefined) found.set(subject, { subject, name, scopes, sessions: 1, createdAt, usedAt });
        else before.sessions++;
      }
      return {
        claim,
        rules: rules.map(({ value, role }) => ({ value, role })),
        people: [...found.values()].map(({ createdAt, usedAt, ...member }) => ({
          ...member,
          loggedInAt: iso(createdAt),
          lastUsedAt: iso(usedAt),
        })),
      };
    },
  };
  serve(server, membersApi, handlers, auth.project);
}

interface Member {
  readonly subject: string;
  readonly name: string;
  readonly scopes: (typeof SCOPES)[number][];
  sessions: number;
  readonly createdAt: number;
  readonly usedAt: number;
}

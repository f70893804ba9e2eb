/** Constructs the console's side of the server; undefined where the settings switch it off. */

import type { Meeting } from "../../shared/tls/peers.ts";
import type { Callers } from "../access/wire.ts";
import type { Base } from "../base/base.ts";
import type { OrchestratorConfig } from "../config.ts";
import type { EdgeRoutingTable } from "../edge/sandbox-lookup.ts";
import { UpstreamPlanner } from "../edge/upstream-planner.ts";
import type { Store } from "../store/store.ts";
import { createLongAnswers } from "./long-answers.ts";
import { createPeople } from "./oidc/people.ts";
import { createProvider } from "./oidc/provider.ts";
import { readRules } from "./oidc/roles.ts";
import type { OidcDeps } from "./oidc/routes.ts";
import { type Console, createRoutes } from "./routes.ts";
import { allowedNames } from "./rules.ts";
import { createSessions } from "./sessions.ts";

interface ConsoleSources {
  readonly store: Store;
  readonly callers: Pick<Callers, "adminTokens">;
  readonly routes: EdgeRoutingTable;
  readonly nodeToken: (nodeId: string) => string;
  readonly meeting: (nodeId: string) => Meeting | undefined;
}

export function createConsole({ config, now, alone, log }: Base, sources: ConsoleSources): Console | undefined {
  if (config.console === "off") return undefined;
  const { store, callers, routes, nodeToken: token, meeting } = sources;
  const { keys, sandboxes } = store;
  const oidc = createOidc(config, store, { now, log });
  const people = oidc?.people;
  const sessions = createSessions({ sessions: store.sessions, keys, adminTokens: callers.adminTokens, people, now });
  return createRoutes({
    sessions,
    people: store.sessions,
    oidc,
    longAnswers: createLongAnswers(sessions),
    envd: {
      sandboxes,
      routes,
      planner: new UpstreamPlanner({ token, meeting, hasEveryRemoval: () => alone }),
    },
    hosts: allowedNames(config.consoleHosts, config.publicUrl),
  });
}

/** Undefined: the settings name no provider of log-ins. */
function createOidc(config: OrchestratorConfig, store: Store, deps: Pick<Base, "now" | "log">): OidcDeps | undefined {
  const { oidcIssuer: issuer, oidcClientId: clientId = "", oidcClientSecret: clientSecret, oidcScope: scope } = config;
  if (issuer === undefined) return undefined;
  return {
    name: new URL(issuer).host,
    provider: createProvider({ issuer, clientId, clientSecret, scope }, deps),
    people: createPeople({ projects: store.projects, rules: readRules(config.oidcRoles), claim: config.oidcClaim }),
  };
}

/** Everything below `/console`: the page, log-in and log-out, and the API that speaks for whoever is logged in. */

import { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { isError } from "../../shared/http/errors.ts";
import { type Around, surround } from "../../shared/http/serve.ts";
import { showedCredentials } from "../../shared/http/server.ts";
import { VERSION } from "../../shared/version.ts";
import type { Auth } from "../access/auth.ts";
import type { Owner } from "../access/owner.ts";
import type { SessionStore } from "../store/sessions/sessions.ts";
import { addEnvd, type EnvdDeps } from "./envd.ts";
import { addLogIns, fromPage } from "./log-ins.ts";
import type { LongAnswers } from "./long-answers.ts";
import { addMembers } from "./oidc/members.ts";
import { addOidc, type OidcDeps } from "./oidc/routes.ts";
import { addPage } from "./page.ts";
import { checkHost } from "./rules.ts";
import { hostOf, type Sessions } from "./sessions.ts";

const HEADERS = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
};

export interface ConsoleDeps {
  readonly sessions: Sessions;
  /** Who is logged in by name. */
  readonly people: Pick<SessionStore, "people">;
  readonly longAnswers: LongAnswers;
  readonly envd: EnvdDeps;
  /** Undefined: nobody logs in by name. */
  readonly oidc: OidcDeps | undefined;
  /** Host names beside `localhost` and addresses. */
  readonly hosts: ReadonlySet<string>;
}

/** What the API's server gives: authentication, what it does around requests, and the routes for people. */
interface Server {
  readonly auth: Auth;
  readonly around: Around;
  serve(server: FastifyInstance, auth: Pick<Auth, "project" | "operator">): void;
}

export interface Console {
  add(server: FastifyInstance, given: Server): void;
  /** Ends its answers that are under way. */
  stop(): void;
}

export function createRoutes(deps: ConsoleDeps): Console {
  return {
    stop: () => deps.longAnswers.stop(),
    add(server, given) {
      void server.register(
        (scope, _options, done) => {
          scope.addHook("onRequest", (request, reply, next) => {
            void reply.headers(HEADERS);
            // The public API's answers are for every origin, these are not.
            void reply.removeHeader("access-control-allow-origin");
            checkHost({ host: hostOf(request) }, deps.hosts);
            next();
          });
          addLogIns(scope, { sessions: deps.sessions, shown, ...given });
          if (deps.oidc !== undefined) addOidc(scope, { sessions: deps.sessions, ...given, ...deps.oidc });
          addPage(scope);
          void scope.register((api, _none, added) => addApi(api, deps, given, added), { prefix: "/api" });
          done();
        },
        { prefix: "/console" },
      );
    },
  };
}

function addApi(server: FastifyInstance, deps: ConsoleDeps, given: Server, done: () => void): void {
  const { sessions, longAnswers, envd, oidc } = deps;
  server.addHook("onRequest", (request, reply, next) => {
    fromPage(request);
    nameProject(request);
    void reply.header("cache-control", "no-store");
    next();
  });
  server.addHook("onSend", (request, _reply, payload, next) => {
    if (payload instanceof Readable) longAnswers.watch(request, payload);
    // By the route and not by the path, which can be written in several ways.
    next(null, typeof payload === "string" ? withoutTokens(payload, request.routeOptions.url ?? "") : payload);
  });
  surround(server, given.around);
  const auth = given.auth.by((request) => sessions.read(request));
  server.get("/session", async (request) => {
    try {
      const owner = await sessions.read(request);
      showedCredentials(request, "known");
      return shown(owner);
    } catch (error) {
      // The page asks before anybody has logged in.
      if (isError(error, "unauthorized"))
        return { kind: "none", version: VERSION, ...(oidc === undefined ? {} : { provider: oidc.name }) };
      throw error;
    }
  });
  given.serve(server, auth);
  addMembers(server, auth, { people: oidc?.people, sessions: deps.people });
  addEnvd(server, envd, auth);
  done();
}

/** A link to a download has no headers, so an operator's names the project in its query. */
function nameProject(request: FastifyRequest): void {
  const { project } = request.query as { readonly project?: unknown };
  if (typeof project === "string") request.headers["x-team-id"] ??= project;
}

/** The tokens of sandboxes and volumes, which the platform uses for the page, stay here. */
function withoutTokens(body: string, route: string): string {
  const hidden = [
    "envdAccessToken",
    "trafficAccessToken",
    ...(/^\/console\/api\/volumes\b/.test(route) ? ["token"] : []),
  ];
  if (!hidden.some((name) => body.includes(`"${name}"`))) return body;
  return JSON.stringify(JSON.parse(body, (name, value: unknown) => (hidden.includes(name) ? undefined : value)));
}

/** Who is logged in, for the page. */
function shown(owner: Owner) {
  if (owner.kind === "admin") return { kind: "admin", version: VERSION };
  if (owner.kind === "person") {
    const projects = owner.person.grants.map(({ project: { id, name }, scopes }) => ({ id, name, scopes }));
    return { kind: "person", version: VERSION, name: owner.person.name, projects };
  }
  const { project, name, mask, scopes, expiresAt } = owner.owner;
  const { id, name: projectName } = project;
  return {
    kind: "key",
    version: VERSION,
    project: { id, name: projectName },
    key: { name, mask, scopes, expiresAt: expiresAt === undefined ? null : new Date(expiresAt).toISOString() },
  };
}

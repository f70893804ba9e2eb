/** Authenticates callers (API key, operator's or admin token, node token, metrics token) and limits their rates. */

import { createHash } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { clientOf } from "../../shared/http/connections/client-address.ts";
import type { Access, Route } from "../../shared/http/contract.ts";
import { AppError, isError } from "../../shared/http/errors.ts";
import { isLoopback } from "../../shared/http/plain-addresses.ts";
import { lackedScope } from "../../shared/http/scopes.ts";
import type { Authenticate } from "../../shared/http/serve.ts";
import { isApiKey, sameSecret } from "../../shared/ids.ts";
import type { NodeKeys } from "../base/keys/node-keys.ts";
import { identify, maskOf } from "../callers/caller.ts";
import type { KeyOwner } from "../store/keys/keys.ts";
import { isProject, type ProjectStore } from "../store/projects/projects.ts";
import type { AdminTokens } from "./admin-tokens.ts";
import type { Identity } from "./key-cache.ts";
import { identifyOwner, type Owner, personIn } from "./owner.ts";
import type { ProjectCaller } from "./project-caller.ts";
import type { Rate, RateLimiter } from "./rate-limit.ts";
import { checkStanding } from "./standing.ts";

export interface AuthDeps {
  readonly identity: Identity;
  readonly projects: ProjectStore;
  readonly limiter: RateLimiter;
  /** Limit of refused credentials, apart from the others: a caller can make up as many credentials as it likes. */
  readonly refusals: RateLimiter;
  readonly adminTokens: AdminTokens;
  readonly nodeKeys: NodeKeys;
  /** Tokens of the program that collects metrics; operators may read them too. */
  readonly metricsTokens: readonly string[];
  /** Limits of a project's calls, by kind of route. */
  rate(route: Route): { readonly group: string; readonly rate: Rate };
  /** Limits of one refused credential from one address; `refusedInAll`: of all refused ones from that address. */
  readonly refusedRate: Rate;
  readonly refusedInAll: Rate;
  /** Counts refusals for the metrics. */
  observeLimited(group: string): void;
}

/** An edge program. */
export interface EdgeVisitor {
  /** For the log. */
  readonly name: string;
  /** Absent: it has not joined, and goes by its token. */
  readonly isMember?: () => Promise<boolean>;
}

export interface Auth {
  /** Routes of a project: an API key, or an operator naming the project. */
  readonly project: Authenticate<ProjectCaller>;
  /** Operators only. */
  readonly operator: Authenticate<undefined>;
  /** The node that the caller may speak for. */
  readonly node: Authenticate<string>;
  /** An edge program on this machine. */
  readonly edge: Authenticate<EdgeVisitor>;
  /** Operators and the program that collects metrics. */
  readonly metrics: Authenticate<undefined>;
  readonly open: Authenticate<undefined>;
  /**
   * Whose API key or admin token the request shows, or what `read` finds in their place: the caller of a log-in. Limits wrong
   * ones, and the log-ins of each owner, which no other limit counts.
   */
  readonly logIn: (request: FastifyRequest, read?: () => Promise<Owner>) => Promise<Owner>;
  /** Limits a step of log-ins from one address in which nobody has shown anything yet. */
  readonly stranger: (request: FastifyRequest, step: string) => void;
  /** As `project` and `operator`, for callers whom `read` finds by other means than a key or token. */
  readonly by: (read: (request: FastifyRequest) => Promise<Owner>) => Pick<Auth, "project" | "operator">;
  /**
   * Callers with a token that another folder reads. Limits wrong tokens and then the calls of the project, and refuses a
   * project that an operator has closed.
   */
  readonly token: <T extends { readonly projectId: string }>(
    call: { readonly request: FastifyRequest; readonly reply: FastifyReply; readonly route: Route },
    read: () => Promise<T>,
  ) => Promise<T>;
}

/** Each log-in is a row of the database and an entry of the audit log, and none is a call that a project's rates count. */
const LOG_INS: Rate = { perSecond: 1, burst: 60 };

export function createAuth(deps: AuthDeps): Auth {
  /**
   * Limits wrong credentials: a caller that guesses soon gets 429. Counts them per credential too, so that of several
   * clients behind one proxy only the one that repeats a wrong key gets 429. Never refuses right credentials for wrong ones.
   */
  async function guarded<T>(request: FastifyRequest, check: () => Promise<T>): Promise<T> {
    try {
      return await check();
    } catch (error) {
      if (isError(error, "unauthorized")) {
        try {
          const client = clientOf(request.ip);
          deps.refusals.take(`${client} ${credential(request)}`, deps.refusedRate);
          deps.refusals.take(client, deps.refusedInAll);
        } catch (limited) {
          deps.observeLimited("refused");
          throw limited;
        }
      }
      throw error;
    }
  }

  function limited(projectId: string, route: Route, reply: FastifyReply): void {
    const { group, rate } = deps.rate(route);
    try {
      const standing = deps.limiter.take(`${group} ${projectId}`, rate);
      void reply.headers({
        "ratelimit-limit": String(standing.limit),
        "ratelimit-remaining": String(standing.remaining),
        "ratelimit-reset": String(standing.resetSeconds),
      });
    } catch (error) {
      deps.observeLimited(group);
      if (isError(error, "rate_limited")) {
        void reply.headers({
          "ratelimit-limit": String(rate.burst),
          "ratelimit-remaining": "0",
          "ratelimit-reset": String(error.retryAfterSeconds ?? 1),
        });
      }
      throw error;
    }
  }

  async function ownerOf(key: string): Promise<KeyOwner> {
    if (!isApiKey(key)) throw new AppError("unauthorized", malformed(key));
    const owner = await deps.identity.owner(key);
    if (owner === "unknown") throw new AppError("unauthorized", "Unknown or revoked API key");
    if (owner === "expired") throw new AppError("unauthorized", "Expired API key: make another one");
    return owner;
  }

  async function byKey(request: FastifyRequest, key: string): Promise<ProjectCaller> {
    return callerOf(request, await ownerOf(key), maskOf(key));
  }

  function callerOf(request: FastifyRequest, { project, ...shown }: KeyOwner, mask: string): ProjectCaller {
    identify(request, { kind: "key", keyId: shown.keyId, mask, projectId: project.id });
    const asked = header(request, "x-team-id");
    if (asked !== undefined && !isProject(project, asked)) {
      throw new AppError("forbidden", "X-Team-ID names another project than the API key's");
    }
    return { ...project, credential: { kind: "key", ...shown } };
  }

  async function namedProject(request: FastifyRequest): Promise<ProjectCaller> {
    identify(request, { kind: "admin" });
    const asked = header(request, "x-team-id");
    if (asked === undefined) throw new AppError("bad_request", "header X-Team-ID is required with this authentication");
    const project = await deps.projects.find(asked);
    if (project === undefined || project.status === "deleting")
      throw new AppError("forbidden", "project not found, or no access to it");
    identify(request, { kind: "admin", projectId: project.id });
    return { ...project, credential: { kind: "admin" } };
  }

  function isBearer(request: FastifyRequest): boolean {
    const authorization = header(request, "authorization");
    if (authorization === undefined) return false;
    const token = bearer(request);
    if (token !== undefined && deps.adminTokens.has(token)) return true;
    if (token !== undefined && isApiKey(token)) {
      throw new AppError("unauthorized", "An API key is read from the X-API-Key header alone, not from Authorization");
    }
    throw new AppError(
      "unauthorized",
      "Access tokens are discontinued since 1 August 2026: use an API key in the X-API-Key header",
    );
  }

  function isAdmin(request: FastifyRequest): boolean {
    const token = header(request, "x-admin-token");
    if (token === undefined) return false;
    if (deps.adminTokens.has(token)) return true;
    throw new AppError("unauthorized", "Invalid admin token");
  }

  async function ownerShown(request: FastifyRequest): Promise<Owner> {
    if (isAdmin(request)) return { kind: "admin" };
    const key = header(request, "x-api-key");
    if (key === undefined) throw new AppError("unauthorized", "Missing API key: send it in the X-API-Key header");
    return { kind: "key", owner: await ownerOf(key) };
  }

  function logInLimited(who: string): void {
    try {
      deps.limiter.take(`log_in ${who}`, LOG_INS);
    } catch (error) {
      deps.observeLimited("log_in");
      throw error;
    }
  }

  async function projectOf(access: Access, request: FastifyRequest): Promise<ProjectCaller> {
    const key = header(request, "x-api-key");
    if (access === "project" && key !== undefined) return byKey(request, key);
    if (isBearer(request) || isAdmin(request)) return namedProject(request);
    if (access === "project") throw new AppError("unauthorized", "Missing API key: send it in the X-API-Key header");
    throw new AppError("unauthorized", "Missing credentials: send a bearer or X-Admin-Token, and X-Team-ID");
  }

  /** The caller of a project's route, once its project may call and its key has the scope. */
  const admitted =
    (find: (access: Access, request: FastifyRequest) => Promise<ProjectCaller>): Auth["project"] =>
    async (access, request, route, reply) => {
      const caller = await guarded(request, () => find(access, request));
      checkStanding(caller, route);
      limited(caller.id, route, reply);
      allowed(caller, route);
      return caller;
    };

  return {
    project: admitted(projectOf),
    async logIn(request, read = () => ownerShown(request)) {
      const owner = await guarded(request, read);
      logInLimited(identifyOwner(request, owner));
      return owner;
    },
    stranger: (request, step) => logInLimited(`${step} ${clientOf(request.ip)}`),
    by: (read) => ({
      project: admitted(async (access, request) => {
        const shown = await read(request);
        if (shown.kind === "admin") return namedProject(request);
        if (access === "project" && shown.kind === "person")
          return personIn(request, shown.person, header(request, "x-team-id"));
        if (access === "project" && shown.kind === "key") return callerOf(request, shown.owner, shown.owner.mask);
        throw new AppError("forbidden", "this route is for operators: log in with the admin token");
      }),
      operator: async (_access, request) =>
        guarded(request, async () => {
          const { kind } = await read(request);
          if (kind !== "admin")
            throw new AppError("forbidden", "this route is for operators: log in with the admin token");
          identify(request, { kind: "admin" });
          return undefined;
        }),
    }),
    operator: async (access, request) =>
      guarded(request, async () => {
        if (access === "bearer" ? isBearer(request) : isAdmin(request)) {
          identify(request, { kind: "admin" });
          return Promise.resolve(undefined);
        }
        throw access === "bearer"
          ? new AppError("unauthorized", "Missing bearer token: send Authorization: Bearer <token>")
          : new AppError("unauthorized", "Missing admin token: send it in the X-Admin-Token header");
      }),
    node: async (_access, request) =>
      guarded(request, async () => {
        const token = bearer(request);
        const nodeId = token === undefined ? undefined : deps.nodeKeys.nodeOf(token);
        if (nodeId !== undefined) {
          identify(request, { kind: "node", nodeId });
          return Promise.resolve(nodeId);
        }
        throw new AppError("unauthorized", "Invalid node token");
      }),
    edge: async (_access, request) =>
      guarded(request, async () => {
        if (!isLoopback(request.raw.socket.remoteAddress ?? ""))
          throw new AppError("forbidden", "an edge of another machine joins the platform, and comes to SVC_NODES_PORT");
        if (deps.nodeKeys.isEdge(bearer(request) ?? "")) return Promise.resolve({ name: "edge on this machine" });
        throw new AppError("unauthorized", "Invalid token of an edge");
      }),
    metrics: async (_access, request) =>
      guarded(request, async () => {
        const token = bearer(request) ?? header(request, "x-admin-token") ?? "";
        if (deps.adminTokens.has(token)) return Promise.resolve(undefined);
        if (deps.metricsTokens.some((known) => sameSecret(token, known))) {
          identify(request, { kind: "metrics" });
          return Promise.resolve(undefined);
        }
        throw new AppError("unauthorized", "Send the metrics token or the admin token: Authorization: Bearer <token>");
      }),
    open: () => undefined,
    async token({ request, reply, route }, read) {
      const named = await guarded(request, read);
      limited(named.projectId, route, reply);
      const project = await deps.projects.find(named.projectId);
      if (project !== undefined) checkStanding(project, route);
      return named;
    },
  };
}

/** @throws {AppError} forbidden when the caller's key lacks the scope that the route needs */
function allowed({ credential }: ProjectCaller, route: Route): void {
  if (credential.kind === "admin") return;
  const lacked = lackedScope(credential.scopes, route);
  const who = credential.kind === "key" ? "this API key" : "your role";
  if (lacked !== undefined) throw new AppError("forbidden", `${who} lacks the scope '${lacked}'`);
}

/** What is wrong with a key that has not the form of one, in words that do not repeat it. */
function malformed(key: string): string {
  const expected = "Invalid API key format: expected svc_ followed by 40 hexadecimal digits";
  if (/^(["']).*\1$/.test(key)) return `${expected}, without the quotes around it`;
  if (/^bearer\s/i.test(key)) return `${expected}, without the word Bearer before it`;
  if (key.startsWith("$"))
    return `${expected}, and not the name of a variable: single quotes keep a shell from its value`;
  return expected;
}

/** A name for the caller's credentials in the counters, which does not reveal them. */
function credential(request: FastifyRequest): string {
  const shown = ["x-api-key", "authorization", "x-admin-token", "x-console-code", "cookie"].map(
    (name) => header(request, name) ?? "",
  );
  return createHash("sha256").update(shown.join("\n")).digest("base64").slice(0, 16);
}

function bearer(request: FastifyRequest): string | undefined {
  return /^bearer\s+(\S+)$/i.exec(header(request, "authorization") ?? "")?.[1];
}

function header(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

/** Log-in and log-out: an API key or admin token is exchanged once for a cookie, which lives no longer than what it was got with. */

import { createHash, randomBytes } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { AppError, isError } from "../../shared/http/errors.ts";
import { sameSecret } from "../../shared/ids.ts";
import type { AdminTokens } from "../access/admin-tokens.ts";
import type { Owner } from "../access/owner.ts";
import type { KeyOwner, KeyStore } from "../store/keys/keys.ts";
import type { SessionStore } from "../store/sessions/sessions.ts";
import { cookieHeader, type Place, readCookie } from "./cookie.ts";
import type { People } from "./oidc/people.ts";

const SESSION_MS = 7 * 86_400_000;
/** The provider of log-ins does not say when somebody may no longer log in, so people do it again each day. */
const PERSON_MS = 12 * 3_600_000;
/** As long as somebody needs to click on what `up` has printed. */
const LINK_MS = 600_000;

export interface SessionsDeps {
  readonly sessions: SessionStore;
  readonly keys: Pick<KeyStore, "findOwnerById">;
  readonly adminTokens: AdminTokens;
  /** Undefined: nobody logs in by name. */
  readonly people: Pick<People, "read"> | undefined;
  readonly now: () => number;
}

export type Sessions = ReturnType<typeof createSessions>;

export function createSessions({ sessions, keys, adminTokens, people, now }: SessionsDeps) {
  async function keyOwner(keyId: string | undefined): Promise<KeyOwner> {
    const owner = keyId === undefined ? undefined : await keys.findOwnerById(keyId);
    if (owner === undefined || (owner.expiresAt ?? Number.POSITIVE_INFINITY) <= now())
      throw new AppError("unauthorized", "the API key of this session has expired: log in again");
    return owner;
  }

  /**
   * Always a new session: one that somebody else put into the browser is never logged in.
   * @param person of an owner that is one: what the session keeps of them
   */
  async function begin(request: FastifyRequest, reply: FastifyReply, owner: Owner, person?: string): Promise<void> {
    const cookie = randomBytes(32).toString("base64url");
    const token = request.headers["x-admin-token"];
    const lifeMs = owner.kind === "person" ? PERSON_MS : SESSION_MS;
    await sessions.create({
      hash: hashOf(cookie),
      kind: owner.kind,
      keyId: owner.kind === "key" ? owner.owner.keyId : undefined,
      adminDigest: owner.kind === "admin" && typeof token === "string" ? digest(cookie, token.trim()) : undefined,
      person,
      lifeMs,
    });
    void reply.header("set-cookie", cookieHeader(placeOf(request), cookie, lifeMs / 1000));
  }

  /** Roles are those of the rules of now. */
  async function personOf(kept: string | undefined): Promise<Owner> {
    if (people === undefined || kept === undefined)
      throw new AppError("unauthorized", "log-in by name is switched off: log in with an API key");
    try {
      return { kind: "person", person: await people.read(kept) };
    } catch (error) {
      if (!isError(error, "forbidden")) throw error;
      throw new AppError("unauthorized", `${error.message}: the session has ended`, { cause: error });
    }
  }

  /**
   * @param isUse false: the platform looks whether the session lasts, and nobody asks for anything
   * @throws {AppError} unauthorized
   */
  async function read(request: FastifyRequest, isUse = true): Promise<Owner> {
    const cookie = readCookie(placeOf(request), request.headers.cookie);
    const session = cookie === undefined ? undefined : await sessions.read(hashOf(cookie), isUse);
    if (cookie === undefined || session === undefined)
      throw new AppError("unauthorized", "nobody is logged in to the console, or the session has ended: log in");
    if (session.kind === "person") return personOf(session.person);
    if (session.kind !== "admin") return { kind: "key", owner: await keyOwner(session.keyId) };
    const { adminDigest = "" } = session;
    if (adminTokens.some((token) => sameSecret(digest(cookie, token), adminDigest))) return { kind: "admin" };
    throw new AppError("unauthorized", "the admin token of this session is not valid any more: log in again");
  }

  return {
    begin,
    read,

    /**
     * Whom a link logs in.
     * @param isUse takes the link, which works once; false: it stays
     * @throws {AppError} unauthorized: no such link, or it was used
     */
    async ownerOfLink(code: string, isUse: boolean): Promise<Owner> {
      const keyId = await (isUse ? sessions.takeLink(hashOf(code)) : sessions.keyOfLink(hashOf(code)));
      if (keyId === undefined)
        throw new AppError("unauthorized", "this link has been used or is older than ten minutes: log in with a key");
      return { kind: "key", owner: await keyOwner(keyId) };
    },

    /** The code of a link that logs in once. */
    async makeLink(owner: KeyOwner): Promise<string> {
      const code = randomBytes(32).toString("base64url");
      const { keyId } = owner;
      await sessions.create({ hash: hashOf(code), kind: "link", keyId, lifeMs: LINK_MS });
      return code;
    },

    /** Undefined: nobody is logged in, or the session has ended. */
    async find(request: FastifyRequest): Promise<Owner | undefined> {
      try {
        return await read(request, false);
      } catch (error) {
        if (isError(error, "unauthorized")) return undefined;
        throw error;
      }
    },

    async end(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const cookie = readCookie(placeOf(request), request.headers.cookie);
      if (cookie !== undefined) await sessions.delete(hashOf(cookie));
      void reply.header("set-cookie", cookieHeader(placeOf(request), "", 0));
    },
  };
}

/** What the browser has asked for: a page can send `X-Forwarded-Host` itself, and a proxy may pass it on. */
export function hostOf({ headers }: FastifyRequest): string {
  return headers.host ?? "";
}

export function placeOf(request: FastifyRequest): Place {
  return { isTls: request.protocol === "https", host: hostOf(request) };
}

function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("base64");
}

function digest(cookie: string, token: string): string {
  return hashOf(`${cookie}\n${token}`);
}

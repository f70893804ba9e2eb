/**
 * Log-in by OpenID Connect: the browser is sent to the provider, and comes back with a code. State, nonce and the verifier of
 * PKCE are in a cookie of the browser that has begun, so a code or an address of somebody else's log-in is of no use in it.
 */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { AppError, isError } from "../../../shared/http/errors.ts";
import type { Around } from "../../../shared/http/serve.ts";
import type { Auth } from "../../access/auth.ts";
import type { Owner } from "../../access/owner.ts";
import { identify } from "../../callers/caller.ts";
import { cookieHeader, type Place, readCookie } from "../cookie.ts";
import { recorded } from "../log-ins.ts";
import { hostOf, placeOf, type Sessions } from "../sessions.ts";
import type { People } from "./people.ts";
import { newPending, type Pending, type Provider } from "./provider.ts";

export interface OidcDeps {
  readonly provider: Provider;
  readonly people: People;
  /** Shown on the log-in. */
  readonly name: string;
}

/** Time for the log-in at the provider. */
const PENDING_S = 600;
const BACK = "/console/oidc/back";

interface OidcRoutesDeps extends OidcDeps {
  readonly sessions: Sessions;
  readonly auth: Pick<Auth, "logIn" | "stranger">;
  readonly around: Around;
}

export function addOidc(server: FastifyInstance, deps: OidcRoutesDeps): void {
  const { sessions, auth, around, provider, people } = deps;

  server.get("/oidc/begin", async (request, reply) => {
    const pending = newPending();
    const begun = await beginAt(request, pending);
    if (!(begun instanceof URL)) return refuse(reply, begun);
    const { state, nonce, verifier } = pending;
    void reply.header(
      "set-cookie",
      cookieHeader(placeOf(request), [state, nonce, verifier].join("."), PENDING_S, "login"),
    );
    return reply.header("cache-control", "no-store").redirect(begun.href);
  });

  server.get("/oidc/back", async (request, reply) => {
    const place = placeOf(request);
    const pending = readPending(place, request.headers.cookie);
    // Whatever happens, the same log-in cannot be finished twice.
    void reply.headers({ "set-cookie": cookieHeader(place, "", 0, "login"), "cache-control": "no-store" });
    try {
      await recorded(around, {
        operation: "logIn",
        request,
        reply,
        find: () => whoIsBack(request, pending),
        act: ({ owner, kept }) => sessions.begin(request, reply, owner, kept),
      });
      return await reply.redirect("/console/");
    } catch (error) {
      request.log.warn({ err: error }, "refused a log-in by OpenID Connect");
      return refuse(reply, pending === undefined ? "expired" : whyNot(error));
    }
  });

  /** Where the browser logs in, or why it cannot. */
  async function beginAt(request: FastifyRequest, pending: Pending): Promise<URL | Refusal> {
    try {
      auth.stranger(request, "begin");
      return await provider.authorizationUrl(pending, originOf(request) + BACK);
    } catch (error) {
      if (isError(error, "rate_limited")) return "limited";
      request.log.warn({ err: error }, "the provider of log-ins does not answer");
      return "unreachable";
    }
  }

  /** @throws {AppError} unauthorized, forbidden, rate_limited */
  async function whoIsBack(request: FastifyRequest, pending: Pending | undefined) {
    // Before anything is asked of the provider.
    auth.stranger(request, "back");
    const kept: { text?: string } = {};
    const owner = await auth.logIn(request, async (): Promise<Owner> => {
      if (pending === undefined)
        throw new AppError("unauthorized", "the log-in took too long, or was begun in another browser");
      kept.text = people.keep(await claimsOf(request, pending));
      // Also somebody without a role is known by name, and the audit log tells who has tried.
      const { subject, name } = people.who(kept.text);
      identify(request, { kind: "person", personId: subject, mask: name });
      return { kind: "person", person: await people.read(kept.text) };
    });
    return { owner, kept: kept.text };
  }

  /** @throws {AppError} unauthorized, which is counted as a wrong key is. */
  async function claimsOf(request: FastifyRequest, pending: Pending) {
    try {
      return await provider.claims(pending, new URL(request.url, originOf(request)));
    } catch (cause) {
      throw new AppError("unauthorized", "the provider's answer is not that of this log-in", { cause });
    }
  }
}

type Refusal = "expired" | "failed" | "limited" | "no-role" | "unreachable";

function whyNot(error: unknown): Refusal {
  if (isError(error, "rate_limited")) return "limited";
  return isError(error, "forbidden") ? "no-role" : "failed";
}

/** A code alone: text of an address must not be shown as if the console said it. */
function refuse(reply: FastifyReply, why: Refusal): FastifyReply {
  return reply.redirect(`/console/#refused=${why}`);
}

function readPending(place: Place, header: string | undefined): Pending | undefined {
  const [state, nonce, verifier] = readCookie(place, header, "login")?.split(".") ?? [];
  return state && nonce && verifier ? { state, nonce, verifier } : undefined;
}

/** The host is one of those at which the console answers (`rules.ts`), and the provider knows the addresses that it may send to. */
function originOf(request: FastifyRequest): string {
  const origin = `${request.protocol}://${hostOf(request)}`;
  // Without the port of the scheme, which some proxies put there: the provider compares addresses letter for letter.
  return URL.canParse(origin) ? new URL(origin).origin : origin;
}

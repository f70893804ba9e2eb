/**
 * Log-in by OpenID Connect: the browser is sent to the provider, and comes back with a code. State, nonce and the verifier of
 * PKCE are in a cookie of the browser that has begun, so a code or an address of somebody else's log-in is of no use in it.
 */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { AppError, isError } from "../../../shared/http/errors.ts";
import type { Auth, Owner } from "../../access/auth.ts";
import { cookieHeader, type Place, readCookie } from "../cookie.ts";
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

export function addOidc(server: FastifyInstance, sessions: Sessions, auth: Auth, deps: OidcDeps): void {
  const { provider, people } = deps;

  server.get("/oidc/begin", async (request, reply) => {
    const pending = newPending();
    const url = await provider.authorizationUrl(pending, originOf(request) + BACK).catch((error: unknown) => {
      request.log.warn({ err: error }, "the provider of log-ins does not answer");
      return undefined;
    });
    if (url === undefined) return refuse(reply, "unreachable");
    const { state, nonce, verifier } = pending;
    void reply.header(
      "set-cookie",
      cookieHeader(placeOf(request), [state, nonce, verifier].join("."), PENDING_S, "login"),
    );
    return reply.header("cache-control", "no-store").redirect(url.href);
  });

  server.get("/oidc/back", async (request, reply) => {
    const place = placeOf(request);
    const pending = readPending(place, request.headers.cookie);
    // Whatever happens, the same log-in cannot be finished twice.
    void reply.headers({ "set-cookie": cookieHeader(place, "", 0, "login"), "cache-control": "no-store" });
    if (pending === undefined) return refuse(reply, "expired");
    try {
      const kept: { text?: string } = {};
      const owner = await auth.shown(request, async (): Promise<Owner> => {
        kept.text = people.keep(await claimsOf(request, pending));
        return { kind: "person", person: await people.read(kept.text) };
      });
      await sessions.begin(request, reply, owner, kept.text);
      return await reply.redirect("/console/");
    } catch (error) {
      request.log.warn({ err: error }, "refused a log-in by OpenID Connect");
      return refuse(reply, isError(error, "forbidden") ? "no-role" : "failed");
    }
  });

  /** @throws {AppError} unauthorized, which is counted as a wrong key is: each try is a request to the provider. */
  async function claimsOf(request: FastifyRequest, pending: Pending) {
    try {
      return await provider.claims(pending, new URL(request.url, originOf(request)));
    } catch (cause) {
      throw new AppError("unauthorized", "the provider's answer is not that of this log-in", { cause });
    }
  }
}

/** A code alone: text of an address must not be shown as if the console said it. */
function refuse(reply: FastifyReply, why: "expired" | "failed" | "no-role" | "unreachable"): FastifyReply {
  return reply.redirect(`/console/#refused=${why}`);
}

function readPending(place: Place, header: string | undefined): Pending | undefined {
  const [state, nonce, verifier] = readCookie(place, header, "login")?.split(".") ?? [];
  return state && nonce && verifier ? { state, nonce, verifier } : undefined;
}

/** The host is one of those at which the console answers (`rules.ts`), and the provider knows the addresses that it may send to. */
function originOf(request: FastifyRequest): string {
  return `${request.protocol}://${hostOf(request)}`;
}

/** The routes of log-in, log-out and one-time links, each with its entry in the audit log, refusals too. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Input, Route } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Around } from "../../shared/http/serve.ts";
import { REQUEST_ID } from "../../shared/http/server.ts";
import type { Auth } from "../access/auth.ts";
import { identifyOwner, type Owner } from "../access/owner.ts";
import { checkSite } from "./rules.ts";
import { hostOf, type Sessions } from "./sessions.ts";

const common = { method: "POST", tag: "Console", access: "none", status: 200 } as const;

/** What the audit log reads of these routes, which no contract has: a page or `up` calls them, and nobody else. */
const ROUTES = {
  logIn: { ...common, path: "/console/login", summary: "Exchange an API key, an admin token or a link for a session" },
  logOut: { ...common, path: "/console/logout", summary: "End the session" },
  makeLogInLink: { ...common, path: "/console/link", summary: "Make a link that logs in once" },
} as const satisfies Readonly<Record<string, Route>>;

/** They have neither a path with ids nor a body. */
const NO_INPUT: Input<Route> = { params: undefined, query: undefined, body: undefined };

interface Recorded<Who, Done> {
  readonly operation: keyof typeof ROUTES;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Finds who acts, or refuses. */
  readonly find: () => Promise<Who>;
  readonly act: (who: Who) => Promise<Done>;
}

/** The entry of the act is in the transaction of its first change. */
export async function recorded<Who, Done>(around: Around, recording: Recorded<Who, Done>): Promise<Done> {
  const { operation, request, reply, find, act } = recording;
  const call = { operation, route: ROUTES[operation], request };
  // The id finds the entry.
  void reply.header(REQUEST_ID, request.id);
  try {
    const who = await find();
    return await around.run({ ...call, reply, input: NO_INPUT }, () => act(who));
  } catch (error) {
    around.failed(call, error);
    throw error;
  }
}

interface LogInDeps {
  readonly sessions: Sessions;
  readonly auth: Pick<Auth, "logIn">;
  readonly around: Around;
  /** What the page is told of who is logged in. */
  readonly shown: (owner: Owner) => object;
}

export function addLogIns(server: FastifyInstance, { sessions, auth, around, shown }: LogInDeps): void {
  server.post("/login", async (request, reply) => {
    const code = request.headers["x-console-code"];
    const owner = await recorded(around, {
      operation: "logIn",
      request,
      reply,
      find: async () => {
        fromPage(request);
        const found = await auth.logIn(
          request,
          typeof code === "string" ? () => sessions.ownerOfLink(code, true) : undefined,
        );
        // The session that the browser had is not what this entry is about.
        await sessions.end(request, reply);
        return found;
      },
      act: async (found) => {
        await sessions.begin(request, reply, found);
        return found;
      },
    });
    return reply.header("cache-control", "no-store").send(shown(owner));
  });

  server.post("/logout", async (request, reply) => {
    fromPage(request);
    const owner = await sessions.find(request);
    const end = () => sessions.end(request, reply);
    // Where nobody is logged in the browser forgets its cookie, and there is nothing to record.
    if (owner === undefined) await end();
    else {
      identifyOwner(request, owner);
      await recorded(around, { operation: "logOut", request, reply, find: () => Promise.resolve(owner), act: end });
    }
    return reply.status(204).send();
  });

  // Anybody with a key can make a link and send it, so the page says whom it logs in before a person decides.
  server.get("/link", async (request, reply) => {
    const { "x-console-code": code = "" } = request.headers;
    try {
      fromPage(request);
      const owner = await auth.logIn(request, () => sessions.ownerOfLink(String(code), false));
      void reply.header("cache-control", "no-store");
      return shown(owner);
    } catch (error) {
      // The page does not try to log in by a link that is of no use, and the audit log has such attempts.
      around.failed({ operation: "logIn", route: ROUTES.logIn, request }, error);
      throw error;
    }
  });

  // For programs with a key, which have no page: browsers cannot send the key's header from another site.
  server.post("/link", async (request, reply) => {
    const code = await recorded(around, {
      operation: "makeLogInLink",
      request,
      reply,
      find: async () => {
        const owner = await auth.logIn(request);
        if (owner.kind !== "key")
          throw new AppError("bad_request", "a link logs in with an API key, not as an operator");
        return owner;
      },
      act: ({ owner }) => sessions.makeLink(owner),
    });
    return reply
      .status(201)
      .header("cache-control", "no-store")
      .send({ path: `/console/#code=${code}` });
  });
}

/** @throws {AppError} forbidden: the request is not from the console's own page */
export function fromPage(request: FastifyRequest): void {
  const { origin, "sec-fetch-site": site } = request.headers;
  checkSite({
    method: request.method,
    host: hostOf(request),
    origin,
    fetchSite: typeof site === "string" ? site : undefined,
  });
}

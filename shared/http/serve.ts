/** Registers a contract's routes with fastify: validation, statuses, abort signals. All programs serve this way. */

import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { defined } from "../defined.ts";
import type { Access, Context, Contract, Handlers, Input, Route } from "./contract.ts";
import { bodyReader, queryReader } from "./input.ts";
import { REQUEST_ID, showedCredentials } from "./server.ts";
import { check } from "./validate.ts";

/**
 * Identifies the caller, or throws AppError `unauthorized`, `forbidden` or `rate_limited`. Runs before the body is read.
 * `reply` is for headers only (rate limits).
 */
export type Authenticate<Caller> = (
  access: Access,
  request: FastifyRequest,
  route: Route,
  reply: FastifyReply,
) => Promise<Caller> | Caller;

/** A request of one of the contract's routes. */
export interface Call {
  /** Name of the route in its contract. */
  readonly operation: string;
  readonly route: Route;
  readonly request: FastifyRequest;
}

/** What a program does around the requests of its routes. */
export interface Around {
  /**
   * Runs the handler and resolves with its result.
   * @param input what the handler gets, which has passed the checks
   */
  run<T>(
    call: Call & { readonly input: Input<Route>; readonly reply: FastifyReply },
    work: () => Promise<T>,
  ): Promise<T>;
  /** A request failed, in its handler or before it. */
  failed(call: Call, error: unknown): void;
}

const surrounded = new WeakMap<FastifyInstance, Around>();

/** Must be called before the routes of the server are registered. */
export function surround(server: FastifyInstance, around: Around): void {
  surrounded.set(server, around);
}

export function serve<const C extends Contract, Caller>(
  server: FastifyInstance,
  contract: C,
  handlers: Handlers<C, Caller>,
  authenticate: Authenticate<Caller>,
): void {
  for (const name of Object.keys(contract)) {
    const route = contract[name];
    const handler = handlers[name];
    if (route === undefined || handler === undefined) throw new Error(`route ${name} has no handler`);
    addRoute(server, { name, route, handler }, authenticate);
  }
}

type Handler<Caller> = (input: Input<Route>, context: Context<Caller>) => unknown;

function addRoute<Caller>(
  server: FastifyInstance,
  { name, route, handler }: { readonly name: string; readonly route: Route; readonly handler: Handler<Caller> },
  authenticate: Authenticate<Caller>,
): void {
  const read = reader(route);
  const around = surrounded.get(server);
  const callers = new WeakMap<FastifyRequest, Caller>();
  server.route({
    method: route.method,
    url: route.path.replaceAll(/\{(\w+)\}/g, ":$1"),
    ...defined({ bodyLimit: route.maxBodyBytes }),
    async onRequest(request, reply) {
      // Before the authentication, so that its refusals have it too.
      if (route.noStore === true) void reply.header("cache-control", "no-store");
      callers.set(request, await authenticate(route.access, request, route, reply));
      if (route.access !== "none") showedCredentials(request, route.access === "project" ? "known" : "ours");
    },
    onError(request, _reply, error, done) {
      around?.failed({ operation: name, route, request }, error);
      done();
    },
    async handler(request, reply) {
      const caller = callers.get(request) as Caller;
      const input = read(request);
      reply.status(route.status);
      const context: Context<Caller> = {
        caller,
        get signal() {
          return signalOf(reply);
        },
        requestId: request.id,
        get origin() {
          return originOf(request);
        },
        requestHeader: (header) => [request.headers[header]].flat()[0],
        status: (code) => void reply.status(code),
        header: (header, value) => void reply.header(header, value),
      };
      const work = async (): Promise<unknown> => handler(input, context);
      const result = await (around === undefined
        ? work()
        : around.run({ operation: name, route, request, reply, input }, work));
      reply.header(REQUEST_ID, request.id);
      if (result instanceof Readable) {
        const sent = reply.type(route.stream ?? "application/octet-stream").send(result);
        // The server reads what it does not send, and a stream of events would never end.
        if (request.method === "HEAD") result.destroy();
        return sent;
      }
      // Every status but 204 needs an explicit empty body: SDKs parse every other 2xx as JSON.
      if (result === undefined) {
        if (reply.statusCode !== 204) reply.header("content-length", "0");
        return reply.send();
      }
      return reply.type("application/json; charset=utf-8").send(JSON.stringify(result));
    },
  });
}

function reader(route: Route): (request: FastifyRequest) => Input<Route> {
  const params = route.params === undefined ? undefined : check(route.params, "path");
  const query = queryReader(route);
  const body = bodyReader(route);
  return (request) => {
    const given = {
      params: params?.parse(request.params),
      query: query?.(request.query),
      body: body?.(request.body),
    };
    return given as Input<Route>;
  };
}

/** Aborted when the caller disconnects. Watches the reply: the request's own `close` fires once its body has been read. */
function signalOf(reply: FastifyReply): AbortSignal {
  const left = new AbortController();
  const { raw } = reply;
  if (raw.destroyed && !raw.writableFinished) left.abort();
  else raw.once("close", () => raw.writableFinished || left.abort());
  return left.signal;
}

function originOf({ headers, host, protocol }: FastifyRequest): string {
  return `${protocol === "https" || headers["x-forwarded-proto"] === "https" ? "https" : "http"}://${host}`;
}

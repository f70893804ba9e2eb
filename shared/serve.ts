/** Contract → fastify routes: validation, statuses, error bodies, abort signals. One way of serving for every program. */

import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from "fastify";
import type { TSchema } from "typebox";
import type { Access, Context, Contract, Handlers, Input, Route } from "./contract.ts";
import { AppError, toBody } from "./errors.ts";
import type { Log } from "./log.ts";
import { fromUrl } from "./url-values.ts";
import { type Check, check } from "./validate.ts";

const MAX_BODY_BYTES = 1024 * 1024;
const REQUEST_ID = "x-request-id";

/** A fastify server whose refusals, unknown routes and crashes all leave with the one error body. */
export function createServer(log: Log): FastifyInstance {
  // Widened once, here: a pino type would change every generic of the instance.
  const loggerInstance: FastifyBaseLogger = log;
  const server = Fastify({
    loggerInstance,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    // Longer than the keep-alive of any client pool of ours, so that we never close under a request.
    keepAliveTimeout: 620_000,
    requestTimeout: 0,
    routerOptions: { maxParamLength: 512, ignoreTrailingSlash: false },
    genReqId: (request) => requestId(request.headers[REQUEST_ID]),
    clientErrorHandler: refuseUnparsed,
    // A path that cannot be decoded or has an endless part is refused before any hook runs, so nobody else says CORS.
    frameworkErrors: (error, request, reply) => {
      void sendError(error, request, reply.header("access-control-allow-origin", "*"));
    },
  });
  // SDKs send JSON chunked, without Content-Length, and DELETE with or without a body (wire-contract.md §0.1).
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("application/json", { parseAs: "string" }, (_request, text, done) => {
    if (text === "") {
      done(null, undefined);
      return;
    }
    try {
      done(null, JSON.parse(text as string));
    } catch {
      done(new AppError("bad_request", "body is not valid JSON"));
    }
  });
  server.addContentTypeParser("*", { parseAs: "buffer" }, (_request, bytes, done) => {
    if (bytes.length === 0) done(null, undefined);
    else done(new AppError("bad_request", "Content-Type must be application/json"));
  });
  server.setErrorHandler((error, request, reply) => sendError(error, request, reply));
  server.setNotFoundHandler((request, reply) =>
    sendError(new AppError("not_found", `no route ${request.method} ${pathOf(request)}`), request, reply),
  );
  return server;
}

/**
 * Who is calling, or AppError `unauthorized` / `forbidden`. Runs before the body is checked. `reply` is for headers only
 * (rate limits).
 */
export type Authenticate<Caller> = (
  access: Access,
  request: FastifyRequest,
  route: Route,
  reply: FastifyReply,
) => Promise<Caller> | Caller;

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
    addRoute(server, route, handler as Handler<Caller>, authenticate);
  }
}

type Handler<Caller> = (input: Input<Route>, context: Context<Caller>) => unknown;

function addRoute<Caller>(
  server: FastifyInstance,
  route: Route,
  handler: Handler<Caller>,
  authenticate: Authenticate<Caller>,
): void {
  const read = reader(route);
  server.route({
    method: route.method,
    url: route.path.replaceAll(/\{(\w+)\}/g, ":$1"),
    async handler(request, reply) {
      const caller = await authenticate(route.access, request, route, reply);
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
        status: (code) => void reply.status(code),
        header: (header, value) => void reply.header(header, value),
      };
      const result = await handler(input, context);
      reply.header(REQUEST_ID, request.id);
      // Anything that is not 204 must say that it is empty: SDKs parse every other 2xx as JSON (wire-contract.md §0.2).
      if (result === undefined) {
        if (reply.statusCode !== 204) reply.header("content-length", "0");
        return reply.send();
      }
      return reply.type("application/json; charset=utf-8").send(JSON.stringify(result));
    },
  });
}

function reader(route: Route): (request: FastifyRequest) => Input<Route> {
  const params = optionalCheck(route.params, "path");
  const query = optionalCheck(route.query, "query");
  const body = optionalCheck(route.body, "body");
  return (request) => {
    const given = {
      params: params?.parse(request.params),
      query: query?.parse(fromUrl(route.query, request.query)),
      body: body?.parse(request.body ?? (route.optionalBody === true ? {} : request.body)),
    };
    return given as Input<Route>;
  };
}

function optionalCheck(schema: TSchema | undefined, where: string): Check<TSchema> | undefined {
  return schema === undefined ? undefined : check(schema, where);
}

/** Aborted when the caller leaves early. From the reply: the request's own close fires once its body has been read. */
function signalOf(reply: FastifyReply): AbortSignal {
  const left = new AbortController();
  const { raw } = reply;
  if (raw.destroyed && !raw.writableFinished) left.abort();
  else raw.once("close", () => raw.writableFinished || left.abort());
  return left.signal;
}

function originOf({ headers, host }: FastifyRequest): string {
  return `${headers["x-forwarded-proto"] === "https" ? "https" : "http"}://${host}`;
}

function sendError(reason: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = AppError.from(reason);
  const facts = {
    err: error,
    cause: error.cause,
    details: error.details,
    method: request.method,
    path: pathOf(request),
  };
  // 500 is ours to mend; 503 and 504 say how the cluster is, 501 what it cannot do.
  if (error.status === 500) request.log.error(facts, "request failed");
  else if (error.status > 501) request.log.warn(facts, "request could not be served");
  else request.log.debug(facts, "request refused");
  if (error.retryAfterSeconds !== undefined) reply.header("retry-after", String(Math.ceil(error.retryAfterSeconds)));
  return reply
    .status(error.status)
    .header(REQUEST_ID, request.id)
    .type("application/json; charset=utf-8")
    .send(JSON.stringify(toBody(error)));
}

/** What Node's parser refuses never becomes a request; it gets the one error body all the same. */
function refuseUnparsed(error: Error & { readonly code?: string }, socket: Socket): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const tooLong = error.code === "HPE_HEADER_OVERFLOW";
  const status = tooLong ? 431 : 400;
  const message = tooLong ? "request line or headers are too long" : "not an HTTP request that can be understood";
  const body = JSON.stringify({ code: status, message, error_code: "bad_request" });
  socket.end(
    `HTTP/1.1 ${status} ${tooLong ? "Request Header Fields Too Large" : "Bad Request"}\r\n` +
      "content-type: application/json; charset=utf-8\r\naccess-control-allow-origin: *\r\n" +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

// Without the query: it may carry a signature.
function pathOf(request: FastifyRequest): string {
  return request.url.split("?", 1)[0] ?? "";
}

function requestId(given: string | string[] | undefined): string {
  return typeof given === "string" && /^[\w.-]{1,64}$/.test(given) ? given : randomUUID();
}

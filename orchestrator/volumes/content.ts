/**
 * The routes for the content of volumes, which clients reach with a volume's token. They check, find the volume's node and
 * pass content through in both directions: nothing is kept here. Their errors have a string as code.
 */

import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { Agent, type Dispatcher } from "undici";
import { AppError, fromBody } from "../../shared/http/errors.ts";
import { REQUEST_ID, showedCredentials } from "../../shared/http/server.ts";
import { fromUrl } from "../../shared/http/url-values.ts";
import { check } from "../../shared/http/validate.ts";
import { isUuid } from "../../shared/ids.ts";
import { anySignal } from "../../shared/program/any-signal.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Volume } from "../store/volumes/volumes.ts";
import type { VolumeTokens } from "./tokens.ts";

export interface ContentDeps {
  readonly tokens: Pick<VolumeTokens, "read">;
  readonly find: (projectId: string, id: string) => Promise<Volume | undefined>;
  /** Where the agent of a node is, and what it wants to see; undefined: the node is not known. */
  readonly reach: (nodeId: string) => { readonly url: string; readonly token: string } | undefined;
  /** Counts a refused token; throws AppError `rate_limited` for an address that has shown too many. */
  readonly refused: (address: string) => void;
  readonly log: Log;
}

/** As long as SDKs let one upload or download take; shorter for what has no content. */
const CONTENT_LIMIT_MS = 3_600_000;
const LIMIT_MS = 300_000;
const MOST_ANSWER_BYTES = 64 * 1024;
const MAX_PATH = 4095;

const uint32 = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: 4_294_967_294, description }));
const metadata = {
  uid: uint32("Owner"),
  gid: uint32("Group"),
  mode: Type.Optional(Type.Integer({ minimum: 0, maximum: 0o7777 })),
};
const Path = { path: Type.String() };
const ByPath = check(Type.Object(Path), "query");
const Making = Type.Object({ ...Path, ...metadata, force: Type.Optional(Type.Boolean()) });
const MakingCheck = check(Making, "query");
const Listing = Type.Object({ ...Path, depth: Type.Optional(Type.Integer({ minimum: 1, maximum: 64 })) });
const ListingCheck = check(Listing, "query");
const Change = check(Type.Object(metadata), "body");

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Content {
  add(server: FastifyInstance): void;
  stop(): Promise<void>;
}

export function createContent({ tokens, find, reach, refused, log }: ContentDeps): Content {
  const dispatcher = new Agent({ connections: 64, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });

  const identify = async (request: FastifyRequest): Promise<Volume> => {
    const { volumeId } = request.params as { volumeId: string };
    const token = /^bearer\s+(\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
    try {
      if (token === undefined)
        throw new AppError("unauthorized", "Missing volume token: send Authorization: Bearer <token>");
      const named = await tokens.read(token);
      if (!isUuid(volumeId)) throw new AppError("bad_request", "the volume's id must be a UUID");
      if (named.id !== volumeId.toLowerCase())
        throw new AppError("forbidden", "the token is for another volume than the path names");
      showedCredentials(request, "known");
      const volume = await find(named.projectId, named.id);
      if (volume === undefined) throw new AppError("not_found", `Volume '${volumeId}' not found`);
      return volume;
    } catch (error) {
      if (error instanceof AppError && error.code === "unauthorized") refused(request.ip);
      throw error;
    }
  };

  const ask = async (
    { method, raw }: Pick<FastifyRequest, "method" | "raw">,
    reply: FastifyReply,
    to: {
      readonly volume: Volume;
      readonly route: "path" | "dir" | "file";
      readonly query: Query;
      readonly body?: Readable;
    },
  ): Promise<Dispatcher.ResponseData> => {
    const node = reach(to.volume.nodeId);
    if (node === undefined) throw new AppError("node_unreachable", `node ${to.volume.nodeId} is not known`);
    const url = new URL(`/v1/volumes/${to.volume.id}/content/${to.route}`, node.url);
    for (const [name, value] of Object.entries(to.query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    const left = new AbortController();
    reply.raw.once("close", () => reply.raw.writableFinished || left.abort());
    raw.once("aborted", () => left.abort());
    const limit = AbortSignal.timeout(to.route === "file" ? CONTENT_LIMIT_MS : LIMIT_MS);
    try {
      const answer = await dispatcher.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method,
        headers: {
          authorization: `Bearer ${node.token}`,
          ...(to.body === undefined ? {} : { "content-type": "application/octet-stream" }),
        },
        body: to.body ?? null,
        signal: anySignal(left.signal, limit),
      });
      if (answer.statusCode < 400) return answer;
      const text = await answer.body.text();
      throw fromBody(answer.statusCode, parsed(text), `node ${to.volume.nodeId}`);
    } catch (cause) {
      if (cause instanceof AppError) throw cause;
      // The reason of a body that came too slowly.
      const own = to.body?.errored;
      if (own instanceof AppError) throw own;
      throw new AppError("node_unreachable", `node ${to.volume.nodeId}, which has the volume, did not answer`, {
        cause,
      });
    }
  };

  const pass = async (reply: FastifyReply, answer: Dispatcher.ResponseData): Promise<FastifyReply> => {
    void reply.status(answer.statusCode);
    if (answer.statusCode === 204) {
      await answer.body.dump();
      return reply.send();
    }
    for (const name of ["content-type", "content-length"] as const) {
      const value = answer.headers[name];
      if (value !== undefined) void reply.header(name, value);
    }
    return reply.send(answer.body);
  };

  return {
    stop: () => dispatcher.destroy(),
    add(server) {
      const callers = new WeakMap<FastifyRequest, Volume>();
      // A separate fastify context, because its routes take a body of any type as a stream, and have errors of their own.
      void server.register((routes, _options, done) => {
        routes.removeAllContentTypeParsers();
        routes.addContentTypeParser("*", (_request, body, next) => next(null, body));
        routes.addHook("onRequest", async (request) => void callers.set(request, await identify(request)));
        routes.setErrorHandler((reason, request, reply) => {
          const error = AppError.from(reason);
          const at = { method: request.method, path: request.url.split("?", 1)[0], err: error };
          if (error.status >= 500) log.warn(at, "could not serve the content of a volume");
          if ([401, 408, 413].includes(error.status)) reply.header("connection", "close");
          if (error.retryAfterSeconds !== undefined) reply.header("retry-after", String(error.retryAfterSeconds));
          return reply
            .status(error.status)
            .header(REQUEST_ID, request.id)
            .type("application/json; charset=utf-8")
            .send(JSON.stringify({ code: String(error.status), message: error.message, error_code: error.code }));
        });

        const on = (
          methods: readonly ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[],
          route: "path" | "dir" | "file",
          given: (request: FastifyRequest) => Promise<Query> | Query,
        ) =>
          routes.route({
            method: [...methods],
            url: `/volumecontent/:volumeId/${route}`,
            exposeHeadRoute: false,
            async handler(request, reply) {
              const volume = callers.get(request) as Volume;
              const { path, ...rest } = await given(request);
              const query = { path: cleanPath(String(path)), ...rest };
              const body = request.method === "PUT" ? ((request.body ?? request.raw) as Readable) : undefined;
              const to = { volume, route, query, ...(body === undefined ? {} : { body }) };
              return pass(reply, await ask(request, reply, to));
            },
          });

        on(["GET", "DELETE"], "path", ({ query }) => ByPath.parse(query));
        on(["PATCH"], "path", async (request) => ({
          ...ByPath.parse(request.query),
          ...Change.parse(await jsonOf(request.body as Readable | undefined)),
        }));
        on(["GET"], "dir", ({ query }) => ListingCheck.parse(fromUrl(Listing, query)));
        on(["POST"], "dir", ({ query }) => MakingCheck.parse(fromUrl(Making, query)));
        on(["GET"], "file", ({ query }) => ByPath.parse(query));
        on(["PUT"], "file", ({ query }) => MakingCheck.parse(fromUrl(Making, query)));
        done();
      });
    },
  };
}

/** Below the volume's root, without a slash at its start. */
function cleanPath(path: string): string {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (path.includes("\0")) throw new AppError("bad_request", "query field 'path' must not have a NUL");
  if (parts.includes("..")) throw new AppError("bad_request", "query field 'path' must not have '..'");
  if (Buffer.byteLength(path) > MAX_PATH)
    throw new AppError("bad_request", `query field 'path' must have at most ${MAX_PATH} bytes`);
  return parts.join("/");
}

/** The body of a small request. Null means absent, as everywhere. */
async function jsonOf(body: Readable | undefined): Promise<unknown> {
  let text = "";
  for await (const chunk of body ?? []) {
    text += (chunk as Buffer).toString();
    if (text.length > MOST_ANSWER_BYTES) throw new AppError("payload_too_large", "the body is too large");
  }
  const value = text === "" ? {} : parsed(text);
  if (typeof value !== "object" || value === null) throw new AppError("bad_request", "body is not valid JSON");
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/**
 * The routes for the content of volumes, which clients reach with a volume's token. They check, find the volume's node and
 * pass content through in both directions: nothing is kept here. Their errors have a string as code.
 */

import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { TSchema } from "typebox";
import { Agent, type Dispatcher } from "undici";
import { volumeContentApi } from "../../shared/api/volumes/content.ts";
import { connectorFor } from "../../shared/http/connections/meeting-connector.ts";
import type { Route } from "../../shared/http/contract.ts";
import { AppError, fromBody } from "../../shared/http/errors.ts";
import { bodyReader, queryReader } from "../../shared/http/input.ts";
import { bodyIn } from "../../shared/http/requests/json.ts";
import { REQUEST_ID, showedCredentials } from "../../shared/http/server.ts";
import { isUuid } from "../../shared/ids.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Meeting } from "../../shared/tls/peers.ts";
import type { Auth } from "../access/auth.ts";
import { ofNodes } from "../nodes/of-nodes.ts";
import type { Volume } from "../store/volumes/record.ts";
import type { VolumeTokens } from "./tokens.ts";

interface NodeDoor {
  readonly url: string;
  readonly token: string;
  /** How an `https` address is met; undefined: by its host name. */
  readonly meeting: Meeting | undefined;
}

export interface ContentDeps {
  readonly tokens: VolumeTokens;
  readonly find: (projectId: string, id: string) => Promise<Volume | undefined>;
  /** Where the agent of a node is, and what it wants to see; undefined: the node is not known. */
  readonly reach: (nodeId: string) => NodeDoor | undefined;
  readonly log: Log;
}

/** As long as SDKs let one upload or download take; shorter for what has no content. */
const CONTENT_LIMIT_MS = 3_600_000;
const LIMIT_MS = 300_000;
const MOST_ANSWER_BYTES = 64 * 1024;
const MAX_PATH = 4095;

type Query = Readonly<Record<string, string | number | boolean | undefined>>;
type Part = "path" | "dir" | "file";

interface ContentCall {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly route: Route;
}

export interface Content {
  add(server: FastifyInstance, auth: Pick<Auth, "token">): void;
  /**
   * The same routes for callers whom a project has let in: the console, which speaks for whoever is logged in. A file is answered
   * as an attachment of no type, because a browser asks for it.
   */
  addForProject(server: FastifyInstance, auth: Pick<Auth, "project">): void;
  stop(): Promise<void>;
}

export function createContent({ tokens, find, reach, log }: ContentDeps): Content {
  const open = (meeting?: Meeting) =>
    new Agent({
      connections: 64,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      ...(meeting === undefined ? {} : { connect: connectorFor(meeting) }),
    });
  const dispatcher = open();
  /** Of nodes that are met by name: a connection to one must not carry the content of another. */
  const met = ofNodes<Agent>(
    (nodeId) => reach(nodeId) !== undefined,
    (agent) => void agent.close(),
  );
  const dispatcherOf = (nodeId: string, { meeting }: NodeDoor) => {
    if (meeting === undefined) return dispatcher;
    const known = met.get(nodeId) ?? open(meeting);
    met.set(nodeId, known);
    return known;
  };

  const volumeOf = async (request: FastifyRequest, projectId: string): Promise<Volume> => {
    const { volumeID } = request.params as { volumeID: string };
    showedCredentials(request, "known");
    const volume = isUuid(volumeID) ? await find(projectId, volumeID.toLowerCase()) : undefined;
    if (volume === undefined) throw new AppError("not_found", `Volume '${volumeID}' not found`);
    return volume;
  };

  const byToken = async (call: ContentCall, auth: Pick<Auth, "token">): Promise<Volume> => {
    const { request } = call;
    const { volumeID } = request.params as { volumeID: string };
    const token = /^bearer\s+(\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
    const named = await auth.token(call, () => {
      if (token !== undefined) return tokens.read(token);
      throw new AppError("unauthorized", "Missing volume token: send Authorization: Bearer <token>");
    });
    if (!isUuid(volumeID)) throw new AppError("bad_request", "the volume's id must be a UUID");
    if (named.id !== volumeID.toLowerCase())
      throw new AppError("forbidden", "the token is for another volume than the path names");
    return volumeOf(request, named.projectId);
  };

  const byProject = async ({ request, reply, route }: ContentCall, auth: Pick<Auth, "project">): Promise<Volume> => {
    // What a volume's token opens takes the scope that reads the token.
    const asked = { ...route, access: "project", scope: "sandboxes" } as const;
    return volumeOf(request, (await auth.project(asked.access, request, asked, reply)).id);
  };

  const ask = async (
    { method, raw }: Pick<FastifyRequest, "method" | "raw">,
    reply: FastifyReply,
    to: {
      readonly volume: Volume;
      readonly part: Part;
      readonly query: Query;
      readonly body?: Readable;
    },
  ): Promise<Dispatcher.ResponseData> => {
    const node = reach(to.volume.nodeId);
    if (node === undefined) throw new AppError("node_unreachable", `node ${to.volume.nodeId} is not known`);
    const url = new URL(`/v1/volumes/${to.volume.id}/content/${to.part}`, node.url);
    for (const [name, value] of Object.entries(to.query))
      if (value !== undefined) url.searchParams.set(name, String(value));
    const left = new AbortController();
    // Until the last byte has gone through, not just until the node answers.
    const limit = setTimeout(() => left.abort(), to.part === "file" ? CONTENT_LIMIT_MS : LIMIT_MS).unref();
    const closed = () => {
      clearTimeout(limit);
      if (!reply.raw.writableFinished) left.abort();
    };
    reply.raw.once("close", closed);
    // The client may have left while the volume was looked up.
    if (reply.raw.destroyed) closed();
    raw.once("aborted", () => left.abort());
    try {
      const answer = await dispatcherOf(to.volume.nodeId, node).request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method,
        headers: {
          authorization: `Bearer ${node.token}`,
          ...(to.body === undefined ? {} : { "content-type": "application/octet-stream" }),
        },
        body: to.body ?? null,
        signal: left.signal,
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

  const passToBrowser = (reply: FastifyReply, answer: Dispatcher.ResponseData, part: Part): Promise<FastifyReply> => {
    const { "content-length": length } = answer.headers;
    // What somebody has stored decides nothing: it is a file to keep.
    const headers: Dispatcher.ResponseData["headers"] = {
      "content-type": part === "file" && answer.statusCode === 200 ? "application/octet-stream" : "application/json",
      ...(length === undefined ? {} : { "content-length": length }),
    };
    void reply.header("content-disposition", "attachment");
    return pass(reply, { ...answer, headers });
  };

  return {
    async stop() {
      await Promise.all([dispatcher, ...met.values()].map((each) => each.destroy()));
    },
    add: (server, auth) => addRoutes(server, (call) => byToken(call, auth), pass),
    addForProject: (server, auth) => addRoutes(server, (call) => byProject(call, auth), passToBrowser),
  };

  function addRoutes(
    server: FastifyInstance,
    identify: (call: ContentCall) => Promise<Volume>,
    send: (reply: FastifyReply, answer: Dispatcher.ResponseData, part: Part) => Promise<FastifyReply>,
  ): void {
    const callers = new WeakMap<FastifyRequest, Volume>();
    // A separate fastify context, because its routes take a body of any type as a stream, and have errors of their own.
    void server.register((routes, _options, done) => {
      routes.removeAllContentTypeParsers();
      routes.addContentTypeParser("*", (_request, body, next) => next(null, body));
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

      for (const route of Object.values<Route>(volumeContentApi)) {
        const read = reader(route);
        routes.route({
          method: route.method,
          url: route.path.replace("{volumeID}", ":volumeID"),
          exposeHeadRoute: false,
          onRequest: async (request, reply) => void callers.set(request, await identify({ request, reply, route })),
          async handler(request, reply) {
            const volume = callers.get(request) as Volume;
            const { path, ...rest } = await read(request);
            const query = { path: cleanPath(String(path)), ...rest };
            const body = route.bytes === undefined ? undefined : ((request.body ?? request.raw) as Readable);
            const part = route.path.split("/").at(-1) as Part;
            return send(reply, await ask(request, reply, { volume, part, query, ...(body && { body }) }), part);
          },
        });
      }
      routes.all("/volumecontent/*", ({ method, url }) => {
        throw new AppError("not_found", `no route ${method} ${url.split("?", 1)[0]}`);
      });
      done();
    });
  }
}

/** Reads what a node is asked for: the query, and the fields of a small body. */
function reader(route: Route): (request: FastifyRequest) => Promise<Query> {
  const { query, body } = route;
  const ofQuery = queryReader(route);
  const ofBody = bodyReader(route);
  return async (request) => {
    const given = named(query, ofQuery?.(request.query) ?? {});
    if (ofBody === undefined) return given;
    const fields = ofBody(await jsonOf(request));
    return { ...given, ...named(body, fields) };
  };
}

/** The fields that the schema names. */
function named(schema: TSchema | undefined, value: unknown): Query {
  const names = schema !== undefined && "properties" in schema ? Object.keys(schema.properties as object) : [];
  return Object.fromEntries(Object.entries(value as Query).filter(([name]) => names.includes(name)));
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
async function jsonOf({ body, headers }: FastifyRequest): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of (body as Readable | undefined) ?? []) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes > MOST_ANSWER_BYTES) {
      throw new AppError(
        "payload_too_large",
        `the body is larger than ${MOST_ANSWER_BYTES} bytes, the most that this route takes`,
      );
    }
  }
  const value = bodyIn(Buffer.concat(chunks), headers["content-encoding"]) ?? {};
  if (typeof value !== "object" || value === null) throw new AppError("bad_request", "body must be object");
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

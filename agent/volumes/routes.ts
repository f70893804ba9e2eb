/** The routes of the agent's API for the content of volumes, which is streamed. For the orchestrator only. */

import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Type } from "typebox";
import { AppError } from "../../shared/http/errors.ts";
import { fromUrl } from "../../shared/http/fields/url-values.ts";
import { check } from "../../shared/http/validate.ts";
import type { VolumeFiles } from "./volume-files.ts";

export interface VolumeRoutesDeps {
  readonly files: VolumeFiles;
  /** @throws {AppError} for everyone but the orchestrator */
  readonly authenticate: (request: FastifyRequest) => void;
  /** Why nothing may be written on the node's disk; undefined while there is room. */
  readonly refusal: () => AppError | undefined;
}

const MOST_DEPTH = 64;
const number = Type.Optional(Type.Integer({ minimum: 0, maximum: 4_294_967_294 }));
const Query = Type.Object({
  path: Type.String({ maxLength: 4096, pattern: "^[^\\u0000]*$" }),
  depth: Type.Optional(Type.Integer({ minimum: 1, maximum: MOST_DEPTH })),
  uid: number,
  gid: number,
  mode: Type.Optional(Type.Integer({ minimum: 0, maximum: 0o7777 })),
  force: Type.Optional(Type.Boolean()),
});

const BASE = "/v1/volumes/:volumeId/content";

export function addVolumeRoutes(server: FastifyInstance, { files, authenticate, refusal }: VolumeRoutesDeps): void {
  const query = check(Query, "query");
  const parse = ({ params, query: given }: FastifyRequest) => {
    const { volumeId } = params as { volumeId: string };
    if (!/^[0-9a-f-]{36}$/.test(volumeId)) throw new AppError("bad_request", "the volume's id is not a UUID");
    return { id: volumeId, ...query.parse(fromUrl(Query, given)) };
  };
  const writable = () => {
    const refused = refusal();
    if (refused !== undefined) throw refused;
  };

  // A separate fastify context, because its routes take a body of any type as a stream.
  void server.register((routes, _options, done) => {
    routes.removeAllContentTypeParsers();
    routes.addContentTypeParser("*", (_request, body, parsed) => parsed(null, body));
    routes.addHook("onRequest", (request, _reply, next) => {
      authenticate(request);
      next();
    });

    routes.get(`${BASE}/path`, (request) => {
      const { id, path } = parse(request);
      return files.stat(id, path);
    });
    routes.patch(`${BASE}/path`, (request) => {
      const { id, path, ...metadata } = parse(request);
      return files.change(id, path, metadata);
    });
    routes.delete(`${BASE}/path`, async (request, reply) => {
      const { id, path } = parse(request);
      await files.remove(id, path);
      return reply.status(204).send();
    });
    routes.get(`${BASE}/dir`, async (request, reply) => {
      const { id, path, depth = 1 } = parse(request);
      return reply.type("application/json; charset=utf-8").send(await files.list(id, path, depth));
    });
    routes.post(`${BASE}/dir`, async (request, reply) => {
      writable();
      const { id, path, ...making } = parse(request);
      return reply.status(201).send(await files.makeDirectory(id, path, making));
    });
    routes.get(`${BASE}/file`, async (request, reply) => {
      const { id, path } = parse(request);
      const { size, content } = await files.read(id, path);
      return reply.type("application/octet-stream").header("content-length", size).send(content);
    });
    routes.put(`${BASE}/file`, async (request, reply) => {
      writable();
      const { id, path, ...making } = parse(request);
      const content = (request.body ?? request.raw) as Readable;
      return reply.status(201).send(await files.write(id, path, making, content));
    });
    done();
  });
}

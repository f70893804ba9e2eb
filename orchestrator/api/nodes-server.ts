/**
 * The server for nodes and edges on other machines: TLS, and each request from whom the certificate names. Only the join itself,
 * and what a machine reads before it, come without a certificate.
 */

import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import type { FastifyRequest } from "fastify";
import { edgeAuthorityApi, nodeAuthorityApi } from "../../shared/agent-api/joining/authority-shapes.ts";
import { edgeJoinApi, edgeMemberApi } from "../../shared/agent-api/joining/edge-join-shapes.ts";
import { joinApi, memberApi } from "../../shared/agent-api/joining/join-shapes.ts";
import { nodeApi } from "../../shared/agent-api/routes.ts";
import { valueApi } from "../../shared/agent-api/value-shapes.ts";
import { connectionLimits } from "../../shared/http/connections/connection-limits.ts";
import { AppError } from "../../shared/http/errors.ts";
import { isLoopback, JOIN } from "../../shared/http/plain-addresses.ts";
import { type Authenticate, serve } from "../../shared/http/serve.ts";
import { createServer } from "../../shared/http/server.ts";
import { roomFor } from "../../shared/program/descriptors.ts";
import { digestOf } from "../../shared/tls/digest.ts";
import { EDGE, nodeOfName } from "../../shared/tls/names.ts";
import { nameOf } from "../../shared/tls/peers.ts";
import type { Auth, EdgeVisitor } from "../access/auth.ts";
import type { Base } from "../base/base.ts";
import { addDownloads, type FileRoutesDeps } from "../builds/uploads/routes.ts";
import { edgeApi } from "../edge/following/messages.ts";
import { addBaseImage } from "../machines/base-image.ts";
import type { EdgeCaller } from "../machines/join.ts";
import type { Machines } from "../machines/wire.ts";
import type { ApiHandlers } from "./server.ts";

/** Share of the process's descriptors. A node needs a few connections. */
const NODES_SHARE = 1 / 16;

export interface NodesServerParts {
  readonly joining: NonNullable<Machines["joining"]>;
  readonly auth: Auth;
  readonly files: Pick<FileRoutesDeps, "archives" | "isBuilding">;
  readonly handlers: Pick<ApiHandlers, "reports" | "values" | "edges">;
}

/** Resolves with the server's URL when it listens. */
export async function startNodesServer(base: Base, parts: NodesServerParts): Promise<string> {
  const { config, log, teardown } = base;
  const { joining, auth, handlers } = parts;
  const server = createServer(log, {
    door: { credentials: joining.credentials, admits: () => true },
    connections: connectionLimits({ ...roomFor(NODES_SHARE, { total: 0, perAddress: 0 }), name: "nodes", log }),
  });
  const node = byCertificate(auth.node, joining.keyOf);
  serve(server, joinApi, joining.handlers, auth.open);
  serve(server, memberApi, joining.memberHandlers, node);
  serve(server, nodeAuthorityApi, joining.authorityHandlers, node);
  serve(server, nodeApi, handlers.reports, node);
  serve(server, valueApi, handlers.values, node);
  serve(server, edgeJoinApi, joining.edgeHandlers, auth.open);
  const edge: Authenticate<EdgeCaller> = (_access, request) => edgeByCertificate(request, joining);
  serve(server, edgeMemberApi, joining.edgeMemberHandlers, edge);
  serve(server, edgeAuthorityApi, joining.edgeAuthorityHandlers, edge);
  serve(server, edgeApi, handlers.edges, followerOf(joining));
  addBaseImage(server, { directory: config.baseArchives, admits: joining.admits, log });
  addDownloads(server, { ...parts.files, node });
  await server.listen({ host: config.nodesHost, port: config.nodesPort ?? 0 });
  teardown.add("server for nodes", () => server.close());
  const { port } = server.server.address() as AddressInfo;
  return `https://${config.nodesHost.includes(":") ? `[${config.nodesHost}]` : config.nodesHost}:${port}`;
}

/**
 * On the port of the API a node reports from this machine only, and a node that joined does not at all: it shows its
 * certificate, without which its token opens nothing.
 */
export function withoutMembers(auth: Auth, joining: Machines["joining"]): Auth {
  return {
    ...auth,
    async node(access, request, route, reply) {
      const nodeId = await auth.node(access, request, route, reply);
      // A proxy of the operator's that ends TLS says so, and is believed by SVC_TRUSTED_PROXIES.
      if (request.protocol !== "https" && !isLoopback(request.raw.socket.remoteAddress ?? "")) {
        throw new AppError("forbidden", `node '${nodeId}' reports from another machine in clear: ${JOIN}`);
      }
      if (joining === undefined || (await joining.keyOf(nodeId)) === undefined) return nodeId;
      throw new AppError(
        "forbidden",
        `node '${nodeId}' has joined, and reports with its certificate only: SVC_ORCHESTRATOR_URL is the address with the port of SVC_NODES_PORT`,
      );
    },
  };
}

/** The edge whose key the connection has proved. @throws {AppError} forbidden */
async function edgeByCertificate(
  request: FastifyRequest,
  { edgeOf }: NodesServerParts["joining"],
): Promise<EdgeCaller> {
  const keyDigest = edgeKeyOf(request);
  const edgeId = await edgeOf(keyDigest);
  if (edgeId !== undefined) return { edgeId, keyDigest };
  throw new AppError(
    "forbidden",
    "this edge is not on this platform any more: join the platform again with a new token",
  );
}

/** @throws {AppError} forbidden */
function edgeKeyOf(request: FastifyRequest): string {
  const socket = request.raw.socket as TLSSocket;
  const certificate = socket.getPeerX509Certificate();
  if (nameOf(socket) !== EDGE || certificate === undefined)
    throw new AppError("forbidden", "the connection has no certificate of an edge of this platform");
  return digestOf(certificate);
}

function followerOf(joining: NodesServerParts["joining"]): Authenticate<EdgeVisitor> {
  return async (_access, request, route) => {
    // Several times a second, and only to a stream that was opened with the look at the record.
    if (route.path === edgeApi.say.path) return { name: edgeKeyOf(request) };
    const { edgeId, keyDigest } = await edgeByCertificate(request, joining);
    return { name: edgeId, isMember: async () => (await joining.edgeOf(keyDigest)) === edgeId };
  };
}

/** The token, the certificate and the record of the join must name one node with one key. */
function byCertificate(byToken: Authenticate<string>, keyOf: (nodeId: string) => Promise<string | undefined>) {
  const authenticate: Authenticate<string> = async (access, request, route, reply) => {
    const nodeId = await byToken(access, request, route, reply);
    const socket = request.raw.socket as TLSSocket;
    const named = nodeOfName(nameOf(socket));
    if (named !== nodeId) {
      const shown = named === undefined ? "no certificate of a node" : `the certificate of node '${named}'`;
      throw new AppError("forbidden", `the token is of node '${nodeId}', and the connection has ${shown}`);
    }
    const certificate = socket.getPeerX509Certificate();
    const key = await keyOf(nodeId);
    if (certificate === undefined || key !== digestOf(certificate)) {
      throw new AppError(
        "forbidden",
        `node '${nodeId}' ${key === undefined ? "is not on this platform any more" : "has joined with another key since"}: join the platform again with a new token`,
      );
    }
    return nodeId;
  };
  return authenticate;
}

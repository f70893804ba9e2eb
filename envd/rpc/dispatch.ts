/** Finds the handler of a call and writes its answer; refuses what is no call in a form that the caller's protocol can read. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { AppError } from "../../shared/http/errors.ts";
import { sendJson } from "../bodies/reply.ts";
import { inTextForm } from "./grpc-web-text.ts";
import { toConnectError } from "./rpc-errors.ts";

/**
 * Answers one call, once `authorise` has let it pass.
 * @throws {AppError} for a request that no handler takes, before anything was sent
 */
export type RpcHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  authorise: (request: IncomingMessage) => void,
) => Promise<void>;

export function dispatcher(
  handlers: readonly UniversalHandler[],
  failed: (call: string, reason: unknown) => void,
): RpcHandler {
  const byPath = new Map(handlers.map((handler) => [handler.requestPath, inTextForm(handler)]));
  return async (request, response, authorise) => {
    try {
      authorise(request);
    } catch (reason) {
      if (!isGrpcWeb(request)) throw reason;
      sendStatus(response, toConnectError(reason), request.headers["content-type"] ?? "");
      request.resume();
      return;
    }
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const handler = byPath.get(path);
    if (handler === undefined) {
      // Connect's word for it. By the status alone, clients take this for a missing file, or for no such call.
      sendJson(response, 404, { code: "unimplemented", message: `no such call: ${path.slice(0, 200)}` });
      request.resume();
      return;
    }
    const answer = await handler(universalRequestFromNodeRequest(request, response, undefined, undefined));
    refuseOtherProtocols(answer, request);
    await universalResponseToNodeResponse(answer, response).catch((reason: unknown) => {
      // The client has left.
      if (ConnectError.from(reason).code !== Code.Aborted) failed(path, reason);
    });
  };
}

function isGrpcWeb({ headers }: IncomingMessage): boolean {
  return /^application\/grpc-web/i.test(headers["content-type"] ?? "");
}

// Without a body the status is in the headers, where clients of gRPC-Web look only after HTTP's own success.
function sendStatus(response: ServerResponse, error: ConnectError, contentType: string): void {
  const status = new Headers({ "content-type": contentType });
  setTrailerStatus(status, error);
  status.forEach((value, name) => response.setHeader(name, value));
  response.writeHead(200, { "Content-Length": 0 });
  response.end();
}

/** @throws {AppError} unsupported_media_type or bad_request for what the library answers with a status alone */
function refuseOtherProtocols({ status, body }: UniversalServerResponse, request: IncomingMessage): void {
  if (body !== undefined) return;
  if (status === 415) {
    const type = (request.headers["content-type"] ?? "").slice(0, 80);
    throw new AppError(
      "unsupported_media_type",
      `content type '${type}' is not one of a call: application/json and application/proto for calls with one answer, ` +
        "application/connect+json and application/connect+proto for streams, application/grpc-web and " +
        "application/grpc-web-text for both; gRPC itself needs HTTP/2, which is not served",
    );
  }
  if (status === 405)
    throw new AppError("bad_request", `a call is a POST, not a ${(request.method ?? "").slice(0, 20)}`);
}

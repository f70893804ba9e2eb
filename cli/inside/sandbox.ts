/** A way into a running sandbox: its envd, and the token that opens it. A paused sandbox is resumed first. */

import { type CallOptions, type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { Filesystem } from "../../shared/envd-rpc/gen/filesystem_pb.js";
import { Process } from "../../shared/envd-rpc/gen/process_pb.js";
import type { Reply } from "../api/client.ts";
import type { Context } from "../context.ts";
import { EXIT, Failure } from "../failure.ts";
import { ENVD_PORT, type Place, placeOf } from "./address.ts";
import { createInsideTransport } from "./transport.ts";

/** For the edge and proxies on the way, so that a stream without output is not taken for a dead one. */
const KEEPALIVE_S = 20;

export interface Inside {
  readonly sandboxID: string;
  readonly place: Place;
  readonly process: Client<typeof Process>;
  readonly filesystem: Client<typeof Filesystem>;
  /** Headers of every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Options of a call, with the user as whom it is done. */
  as(user: string | undefined, more?: { readonly signal?: AbortSignal; readonly timeoutMs?: number }): CallOptions;
}

export async function enter(context: Context, sandboxID: string): Promise<Inside> {
  const { envdAccessToken, domain } = await running(context, sandboxID);
  const settings = await context.settings();
  const place = placeOf(settings, { sandboxID, port: ENVD_PORT, domain: domain ?? undefined });
  const headers = {
    ...place.headers,
    ...(envdAccessToken === undefined ? {} : { "x-access-token": envdAccessToken }),
  };
  const transport = createInsideTransport(place.url);
  return {
    sandboxID,
    place,
    headers,
    process: createClient(Process, transport),
    filesystem: createClient(Filesystem, transport),
    as: (user, more = {}) => ({
      headers: {
        ...headers,
        "keepalive-ping-interval": String(KEEPALIVE_S),
        ...(user === undefined ? {} : { authorization: `Basic ${Buffer.from(`${user}:`).toString("base64")}` }),
      },
      ...more,
    }),
  };
}

type Running = Pick<Reply<"GET /sandboxes/{sandboxID}">, "envdAccessToken" | "domain">;

async function running(context: Context, sandboxID: string): Promise<Running> {
  const api = await context.api();
  const detail = await api.call("GET /sandboxes/{sandboxID}", { params: { sandboxID }, query: {} });
  if (detail.state !== "paused") return detail;
  context.out.note(`resuming sandbox ${sandboxID}`);
  return api.call("POST /v2/sandboxes/{sandboxID}/connect", { params: { sandboxID }, body: {} });
}

/** Whether the connection failed, and not the call: the same call may succeed over the next one. */
export function isCut(reason: unknown): boolean {
  const { code, metadata, cause } = ConnectError.from(reason);
  if (cause instanceof Failure) return false;
  return (
    code === Code.Unavailable || code === Code.Aborted || (code === Code.Internal && !metadata.has("content-type"))
  );
}

/** What a call into a sandbox failed of, with its exit code. */
export function insideFailure(reason: unknown, sandboxID: string): Error {
  if (!(reason instanceof ConnectError)) return reason instanceof Error ? reason : new Error(String(reason));
  return new Failure(`sandbox ${sandboxID}: ${reason.rawMessage}`, {
    exitCode: exitCodeOf(reason.code),
    cause: reason,
  });
}

function exitCodeOf(code: Code): number {
  switch (code) {
    case Code.NotFound:
      return EXIT.notFound;
    case Code.Unauthenticated:
    case Code.PermissionDenied:
      return EXIT.refused;
    case Code.AlreadyExists:
      return EXIT.conflict;
    case Code.DeadlineExceeded:
      return EXIT.timedOut;
    default:
      return EXIT.failed;
  }
}

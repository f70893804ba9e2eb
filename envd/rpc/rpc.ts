/** Serves both RPC services over Connect and gRPC-Web: JSON and binary, protocol errors, streams that always send their end. */

import { Code, type ConnectError, createConnectRouter, type Interceptor } from "@connectrpc/connect";
import { compressionGzip } from "@connectrpc/connect-node";
import { Filesystem } from "../../shared/envd-rpc/gen/filesystem_pb.js";
import { Process } from "../../shared/envd-rpc/gen/process_pb.js";
import { Entries } from "../filesystem/entry.ts";
import { PolledWatchers } from "../filesystem/watch/polled-watchers.ts";
import type { WatchHub } from "../filesystem/watch/watch-hub.ts";
import type { Session } from "../init/session.ts";
import type { ProcessTable } from "../process/process-table.ts";
import type { Journal } from "../runtime/journal.ts";
import type { System } from "../system/system.ts";
import type { Users } from "../system/users.ts";
import { dispatcher, type RpcHandler } from "./dispatch.ts";
import { filesystemService } from "./filesystem-rpc.ts";
import { legacyClients } from "./legacy-clients.ts";
import { processService } from "./process-rpc.ts";
import { toConnectError } from "./rpc-errors.ts";

/** Largest request message: mostly input for a process. */
const LARGEST_MESSAGE_BYTES = 32 * 1024 * 1024;
/** Replies are not compressed: they stay on the machine, and the proxy in front does not read them. */
const NEVER_COMPRESS_BYTES = 0xffffffff;

export interface RpcDeps {
  readonly session: Session;
  readonly users: Users;
  readonly system: System;
  readonly table: ProcessTable;
  readonly hub: WatchHub;
  readonly journal: Journal;
  readonly now: () => number;
  /** Ends every stream with its reason as error. */
  readonly shutdown: AbortSignal;
}

export function createRpcHandler(deps: RpcDeps): RpcHandler {
  const { session, users, system, table, hub, journal, now, shutdown } = deps;
  const filesystem = {
    session,
    system,
    hub,
    entries: new Entries(system, users),
    polled: new PolledWatchers(hub, now),
  };
  // Refuses bytes that are not UTF-8, which would else become another name than the one that the client sent.
  const jsonOptions = { ignoreUnknownFields: true, textDecoder: new TextDecoder("utf-8", { fatal: true }) };
  const router = createConnectRouter({
    // gRPC itself needs HTTP/2.
    grpc: false,
    acceptCompression: [compressionGzip],
    compressMinBytes: NEVER_COMPRESS_BYTES,
    readMaxBytes: LARGEST_MESSAGE_BYTES,
    jsonOptions,
    interceptors: [errors(journal), legacyClients],
    shutdownSignal: shutdown,
  });
  router.service(Process, processService({ session, table }));
  router.service(Filesystem, filesystemService(filesystem));
  return dispatcher(router.handlers, (call, reason) => {
    const error = reason instanceof Error ? reason.message : "unknown";
    journal.write("error", "rpc", "the answer of a call could not be sent", { call, error });
  });
}

/** Converts errors to the protocol's; unexpected ones are logged once, here. */
function errors(journal: Journal): Interceptor {
  const convert = (reason: unknown): ConnectError => {
    const error = toConnectError(reason);
    if (error.code === Code.Internal)
      journal.write("error", "rpc", "call failed", { error: error.rawMessage, cause: causeOf(error) });
    return error;
  };
  return (next) => async (request) => {
    try {
      const response = await next(request);
      return response.stream ? { ...response, message: converting(response.message, convert) } : response;
    } catch (error) {
      throw convert(error);
    }
  };
}

async function* converting<T>(
  messages: AsyncIterable<T>,
  convert: (reason: unknown) => ConnectError,
): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    throw convert(error);
  }
}

function causeOf({ cause }: ConnectError): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : "unknown";
}

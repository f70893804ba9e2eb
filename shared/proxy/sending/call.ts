/** Opens a request to a server with Node's client, with the limits that hold for every forwarded request. */

import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { MAX_HEAD_BYTES } from "../limits.ts";
import type { OutgoingHead } from "../raw-headers.ts";
import type { DialledAgent, DialledArgs } from "../sockets/agents.ts";

/** Repeating one of these, without a body, changes nothing (RFC 9110 §9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

export interface OpenCallOptions {
  readonly agent: DialledAgent;
  readonly method: string | undefined;
  readonly path: string;
  readonly headers: OutgoingHead["headers"];
  /** Called when a connection has to be opened: the signal ends the dialling. */
  readonly dialSignal: () => AbortSignal;
  /** Reads the answer as browsers and curl do: line feeds alone, folded headers, both framings. */
  readonly lenient: boolean;
}

/** @throws for a head that Node's client refuses to write */
export function openCall({ agent, method, path, headers, dialSignal, lenient }: OpenCallOptions): ClientRequest {
  // Does not use Node's `signal`: an AbortSignal for each request is expensive, and Node does not pass it to the dialling.
  const args: DialledArgs = {
    agent,
    method,
    path,
    headers,
    dialSignal,
    setHost: false,
    maxHeaderSize: MAX_HEAD_BYTES,
    // Has an effect on answers alone: it is the parser of this connection, which reads nothing else.
    insecureHTTPParser: lenient,
  };
  const call = httpRequest(args);
  // No limit of the count, which would drop headers silently: the size is limited already.
  call.maxHeadersCount = 0;
  return call;
}

/** A request that may be sent a second time when a kept connection was closed under it. */
export function isRepeatable(request: IncomingMessage, outgoing: OutgoingHead): boolean {
  return outgoing.framing === "none" && IDEMPOTENT.has(request.method ?? "");
}

/** One request of a sandbox and its answer, streamed both ways. */

import {
  type Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { Duplex } from "node:stream";
import { InformationRelay } from "../../../shared/proxy/information.ts";
import type { TransformOptions } from "../carry/carried.ts";
import { answerRefusal, refusalOf } from "./answer.ts";
import { needsValues, type Resolve, resolveHeaders } from "./placeholders.ts";
import { relayAnswer } from "./relay-answer.ts";
import {
  checkHead,
  type Destination,
  fieldOf,
  forProxy,
  hopByHop,
  outgoingHeaders,
  pairs,
  Refusal,
  valuesOf,
  without,
} from "./request-head.ts";
import { type Upstream, UpstreamError } from "./upstream.ts";

export const MAX_HEAD_BYTES = 64 * 1024;
/** How long a destination that has answered may read the rest of the body. */
const REST_OF_BODY_MS = 10_000;

export interface Rewriting {
  readonly destination: Destination;
  readonly headers: Readonly<Record<string, string>>;
  /** False: a request that needs the value of a placeholder is refused, because it would be sent without TLS. */
  readonly valuesAllowed: boolean;
  readonly resolve: Resolve;
  readonly upstream: Upstream;
  readonly proxied?: TransformOptions["proxied"];
}

/** The head to send, with secret values. */
export interface Outgoing {
  readonly method: string;
  readonly path: string;
  readonly lines: readonly string[];
  /** Names that the rule has set, in the spelling of `fieldOf`. */
  readonly rule: ReadonlySet<string>;
}

/** @throws {Refusal} or what `resolveHeaders` throws */
export async function prepare(request: IncomingMessage, rewriting: Rewriting): Promise<Outgoing> {
  const { method = "", url = "", httpVersion, rawHeaders } = request;
  const head = { method, url, httpVersion, rawHeaders };
  const path = checkHead(head, rewriting.destination);
  // The answer to TRACE is the request as it arrived, with the headers that the sandbox must not see.
  if (method === "TRACE" && Object.keys(rewriting.headers).length > 0)
    throw new Refusal(405, "TRACE would show the headers of a rule");
  if (!rewriting.valuesAllowed && needsValues(rewriting.headers)) {
    throw new Refusal(
      403,
      `the rule of ${rewriting.destination.hostname} has placeholders, whose values are sent over TLS only: use https`,
    );
  }
  const set = await resolveHeaders(rewriting.headers, rewriting.resolve);
  const rule = new Set([...set.keys()].map(fieldOf));
  const lines = outgoingHeaders(head, rewriting.destination, set);
  const { proxied } = rewriting;
  return { method, rule, ...(proxied === undefined ? { path, lines } : forProxy(path, lines, proxied.authorization)) };
}

/** @throws {Refusal} for a head that Node's client does not write; nothing is sent then */
export function send({ method, path, lines }: Outgoing, upstream: Upstream): ClientRequest {
  // A destination would take unread bytes of a body for the next request.
  const withBody = announcesBody(lines);
  try {
    const outgoing = httpRequest({
      agent: upstream as Agent,
      method,
      path,
      headers: withBody && valuesOf(lines, "upgrade").length === 0 ? [...lines, "Connection", "close"] : [...lines],
      setHost: false,
      // Of answers alone: they are read as leniently as the program would read them.
      insecureHTTPParser: true,
      maxHeaderSize: MAX_HEAD_BYTES,
    });
    outgoing.maxHeadersCount = 0;
    if (withBody) outgoing.once("socket", (socket) => upstream.useOnce(socket));
    return outgoing;
  } catch {
    // The error's own message would hold the refused value.
    throw new Refusal(400, "the request target or a header has characters that cannot be sent");
  }
}

function announcesBody(lines: readonly string[]): boolean {
  const lengths = valuesOf(lines, "content-length").filter((value) => Number(value) !== 0);
  return lengths.length > 0 || valuesOf(lines, "transfer-encoding").length > 0;
}

/** Forwards informational answers to `connection`, a few of them; it is undefined once the answer has begun. */
export function relayInformation(
  call: ClientRequest,
  request: IncomingMessage,
  connection: () => Duplex | undefined,
): void {
  const relay = new InformationRelay({ request, connection, keepsBack: () => false });
  call.on("information", (info) => {
    if (call.destroyed || relay.relay(info)) return;
    call.destroy(new UpstreamError("the destination sent informational answers without end"));
  });
}

/** Resolves once the answer has been sent, or cannot be. Never rejects. */
export async function exchange(
  request: IncomingMessage,
  response: ServerResponse,
  rewriting: Rewriting,
  failed: (reason: string) => void,
): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    if (response.closed) resolve();
    else response.once("close", resolve);
  });
  response.sendDate = false;
  request.on("error", () => undefined);
  response.on("error", () => undefined);
  const refuse = (error: unknown) => {
    const refusal = refusalOf(error);
    failed(refusal.message);
    answerRefusal(request, response, refusal);
  };
  try {
    const outgoing = await prepare(request, rewriting);
    if (!response.closed) forward(request, response, { outgoing, upstream: rewriting.upstream, refuse });
  } catch (error) {
    refuse(error);
  }
  await closed;
}

interface Forward {
  readonly outgoing: Outgoing;
  readonly upstream: Upstream;
  readonly refuse: (error: unknown) => void;
  readonly again?: boolean;
}

function forward(request: IncomingMessage, response: ServerResponse, plan: Forward): void {
  const { outgoing, upstream, refuse } = plan;
  const call = send(outgoing, upstream);
  const state = { over: false, answer: undefined as IncomingMessage | undefined };
  relayInformation(call, request, () => (response.headersSent ? undefined : (response.socket ?? undefined)));
  call.once("continue", () => {
    if (request.httpVersion === "1.1" && !response.headersSent && !response.closed) response.writeContinue();
  });
  call.once("upgrade", (_answer, peer) => {
    peer.destroy();
    state.over = true;
    if (!response.closed) refuse(new UpstreamError("the destination switched to a protocol that was not asked for"));
  });
  call.once("response", (answer) => {
    state.answer = answer;
    relayAnswer(request, answer, response, (error) => {
      state.over = true;
      if (!response.closed) refuse(error);
    });
  });
  call.on("error", (error: NodeJS.ErrnoException) => {
    if (state.over) return;
    if (response.headersSent) {
      // The destination did not want the rest of the body. A cut answer is noticed where the answer is read.
      request.unpipe(call);
      request.resume();
      return;
    }
    state.over = true;
    if (response.closed) return;
    if (isStale(call, error, request) && plan.again !== true) forward(request, response, { ...plan, again: true });
    else refuse(error);
  });
  response.once("close", () => {
    const answered = state.answer?.complete === true;
    if (!answered || !response.writableFinished) return void call.destroy();
    if (call.writableFinished) return;
    const rest = setTimeout(() => {
      call.destroy();
      request.socket.destroy();
    }, REST_OF_BODY_MS);
    call.once("close", () => clearTimeout(rest));
  });
  relayBody(request, call, outgoing.rule);
}

/** The destination closed a kept connection just as it was used again: the request has had no effect. */
function isStale(call: ClientRequest, error: NodeJS.ErrnoException, request: IncomingMessage): boolean {
  const bodiless = !["content-length", "transfer-encoding"].some((name) => name in request.headers);
  const repeatable = /^(GET|HEAD|OPTIONS|PUT|DELETE)$/.test(request.method ?? "");
  return call.reusedSocket && repeatable && bodiless && (error.code === "ECONNRESET" || error.code === "EPIPE");
}

function relayBody(request: IncomingMessage, call: ClientRequest, rule: ReadonlySet<string>): void {
  const finish = () => {
    // Some servers merge trailers into the headers, so a trailer must not repeat a header of the rule or of the framing.
    const refused = new Set([...hopByHop(request.rawHeaders), "host", "content-length", "expect"]);
    const trailers = pairs(without(request.rawTrailers, refused, rule));
    if (trailers.length > 0 && valuesOf(request.rawHeaders, "transfer-encoding").length > 0) call.addTrailers(trailers);
    call.end();
  };
  if (request.readableEnded) return finish();
  request.once("error", () => call.destroy());
  request.once("close", () => {
    if (!request.complete) call.destroy();
  });
  request.once("end", finish);
  request.pipe(call, { end: false });
}

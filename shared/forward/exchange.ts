/** One request of a client carried to a server and its response carried back: streaming both ways, nothing kept. */

import { type IncomingMessage, type ServerResponse, validateHeaderName, validateHeaderValue } from "node:http";
import type { Duplex } from "node:stream";
import { EnvelopeTracker, errorFrame, isConnectStream, type StreamError } from "./connect-envelope.ts";
import type { Failure, ForwardPlan, Way } from "./forward-plan.ts";
import { isProxyError, PROXY_ERROR_HEADER } from "./hop-contract.ts";
import {
  endToEnd,
  forwardableTrailers,
  headerValue,
  type OutgoingHead,
  outgoingHead,
  UnforwardableError,
} from "./raw-headers.ts";
import { RequestBody } from "./request-body.ts";
import { MalformedResponseError, type ResponseHead, ResponseReader, type ResponseSink } from "./response-reader.ts";
import { type Splice, splice } from "./splice.ts";
import { type ConnectionUser, UpstreamConnection } from "./upstream-connection.ts";
import type { UpstreamPools } from "./upstream-pools.ts";

/** Repeating one of these, without a body, changes nothing (RFC 9110 §9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);
/** A server that ignores `Expect` must not stop the upload for ever (RFC 9110 §10.1.1). */
const CONTINUE_WAIT_MS = 1_000;
/** Less than what the server says it keeps an idle connection: it may close while our request is under way. */
const IDLE_MARGIN_MS = 1_000;
const LOST: StreamError = {
  code: "unavailable",
  message: "The connection to the sandbox was lost while the request was in flight.",
};

export interface ExchangeHost {
  readonly pools: UpstreamPools;
  /** How long a cut Connect stream waits to learn whether its sandbox was killed, milliseconds. */
  readonly lossGraceMs: number;
  onDone(exchange: Exchange): void;
}

/** The client side of a request to upgrade. */
export interface UpgradeRequest {
  readonly protocol: string;
  readonly socket: Duplex;
  /**
   * Lets go of the socket. Returns what the client has sent behind its request: nothing of it may reach the server
   * before the server agrees, or it would be a second request that nobody has looked at.
   */
  takeOver(): Buffer;
}

export class Exchange implements ResponseSink, ConnectionUser {
  readonly plan: ForwardPlan;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #host: ExchangeHost;
  readonly #upgrade: UpgradeRequest | undefined;
  readonly #method: string;
  reader: ResponseReader;
  #way = 0;
  #outgoing: OutgoingHead | undefined;
  #connection: UpstreamConnection | undefined;
  #dialing: AbortController | undefined;
  #body: RequestBody | undefined;
  #continueTimer: NodeJS.Timeout | undefined;
  #lossTimer: NodeJS.Timeout | undefined;
  #head: ResponseHead | undefined;
  #unflushed = false;
  #final: Buffer | undefined;
  #tracker: EnvelopeTracker | undefined;
  #splice: Splice | undefined;
  #retried = false;
  #done = false;

  constructor(
    host: ExchangeHost,
    plan: ForwardPlan,
    request: IncomingMessage,
    response: ServerResponse,
    upgrade?: UpgradeRequest,
  ) {
    this.#host = host;
    this.plan = plan;
    this.#request = request;
    this.#response = response;
    this.#upgrade = upgrade;
    this.#method = request.method ?? "GET";
    this.reader = new ResponseReader(this.#method, this);
  }

  start(): void {
    this.#response.on("close", () => this.#onClientGone());
    this.#take();
  }

  /** Ends it now, whatever it is doing; resolves when the client has the last of it, or after `limitMs`. */
  end(error: StreamError, limitMs: number): Promise<void> {
    if (this.#done) return Promise.resolve();
    const response = this.#response;
    this.#finish();
    if (this.#splice !== undefined) {
      this.#splice.destroy();
      return Promise.resolve();
    }
    if (!response.headersSent) {
      this.plan.refuse(response, { is: "removed" });
      return ended(response, limitMs);
    }
    if (this.#tracker?.mayAppend !== true || response.writableEnded) {
      response.destroy();
      return Promise.resolve();
    }
    response.end(errorFrame(error));
    return ended(response, limitMs);
  }

  // --- towards the server

  #take(fresh = false): void {
    const way = this.plan.ways[this.#way];
    if (way === undefined) {
      this.#fail({ is: "closed" });
      return;
    }
    try {
      const { edits, path } = this.plan;
      const head = { method: this.#method, path, rawHeaders: this.#request.rawHeaders };
      this.#outgoing = outgoingHead(head, { ...edits, added: way.added }, this.#upgrade?.protocol);
    } catch (error) {
      if (!(error instanceof UnforwardableError)) throw error;
      this.#fail({ is: "unforwardable", message: error.message });
      return;
    }
    if (this.#upgrade === undefined && !fresh) {
      const kept = this.#host.pools.take(this.plan.executionId, way.key);
      if (kept !== undefined && (way.ours || this.#repeatable(this.#outgoing))) {
        this.#send(kept, this.#outgoing);
        return;
      }
      // A server that serves one connection at a time would not look at a fresh one while it holds this.
      kept?.destroy();
    }
    this.#dial(way, this.#outgoing);
  }

  #repeatable(outgoing: OutgoingHead): boolean {
    return outgoing.framing === "none" && IDEMPOTENT.has(this.#method);
  }

  #dial(way: Way, outgoing: OutgoingHead): void {
    const dialing = new AbortController();
    this.#dialing = dialing;
    way.dial(dialing.signal).then(
      (socket) => {
        this.#dialing = undefined;
        if (this.#done) {
          socket.on("error", () => undefined);
          socket.destroy();
          return;
        }
        const connection = new UpstreamConnection(socket);
        this.#host.pools.add(this.plan.executionId, connection);
        this.#send(connection, outgoing);
      },
      () => {
        this.#dialing = undefined;
        if (this.#done) return;
        const last = this.#way + 1 >= this.plan.ways.length;
        if (!last) {
          this.#way++;
          this.#take();
        } else {
          // A proxy that cannot be dialled says nothing of the server, unless the server itself was tried before.
          this.#fail({ is: way.proxied && this.#way === 0 ? "unreachable" : "closed" });
        }
      },
    );
  }

  #send(connection: UpstreamConnection, outgoing: OutgoingHead): void {
    this.#connection = connection;
    connection.begin(this);
    connection.write(outgoing.text);
    if (outgoing.framing === "none" || this.#upgrade !== undefined) return;
    this.#body = new RequestBody(this.#request, connection, outgoing.framing);
    if (!outgoing.expectsContinue || this.#request.httpVersionMinor === 0) this.#body.start();
    else this.#continueTimer = setTimeout(() => this.#continue(), CONTINUE_WAIT_MS);
  }

  #continue(): void {
    clearTimeout(this.#continueTimer);
    this.#continueTimer = undefined;
    if (this.#body === undefined || this.#body.started || this.#response.headersSent) return;
    this.#response.writeContinue();
    this.#body.start();
  }

  onDrain(): void {
    this.#body?.resume();
  }

  // --- from the server

  onInformational(head: ResponseHead): void {
    if (head.status === 100 && this.#outgoing?.expectsContinue === true) this.#continue();
    else if (head.status === 102 && this.#request.httpVersionMinor > 0) this.#response.writeProcessing();
    else if (head.status === 103 && this.#request.httpVersionMinor > 0) this.#earlyHints(head);
  }

  #earlyHints(head: ResponseHead): void {
    const link = headerValue(head.rawHeaders, "link");
    if (link === undefined) return;
    try {
      this.#response.writeEarlyHints({ link });
    } catch {
      // A hint that Node finds malformed is only a hint.
    }
  }

  onHead(head: ResponseHead): boolean {
    const way = this.plan.ways[this.#way];
    const failure = way?.proxied === true ? proxyFailure(head) : undefined;
    if (failure !== undefined) throw failure;
    this.#head = head;
    if (head.status === 101) {
      if (this.#upgrade === undefined) throw new MalformedResponseError("an upgrade nobody asked for");
      return true;
    }
    if (this.#body !== undefined && !this.#body.started) {
      // The body will not be asked for: the client's connection cannot be used for another request.
      this.#response.shouldKeepAlive = false;
    }
    this.#writeHead(head);
    return false;
  }

  #writeHead(head: ResponseHead): void {
    const sized = head.contentLength !== undefined;
    const bodiless = this.#method === "HEAD" || head.status === 204 || head.status === 304;
    const chunks = !sized && !bodiless && this.#request.httpVersionMinor > 0;
    const headers = endToEnd(
      head.rawHeaders,
      (name) => name === "content-length" || (name === "trailer" && !chunks) || this.plan.keepsBack(name),
    );
    if (sized && head.status !== 204) headers.push("Content-Length", String(head.contentLength));
    try {
      this.#response.writeHead(head.status, head.reason, headers);
    } catch {
      throw new MalformedResponseError("a header cannot be passed on");
    }
    if (this.plan.framesErrors && chunks && isConnectStream(head.contentType)) this.#tracker = new EnvelopeTracker();
    this.#unflushed = true;
  }

  onData(chunk: Buffer, last: boolean): void {
    this.#unflushed = false;
    this.#tracker?.push(chunk);
    if (last) {
      this.#final = chunk;
      return;
    }
    if (this.#response.write(chunk)) return;
    this.#connection?.pause();
    this.#response.once("drain", () => this.#connection?.resume());
  }

  onPushed(): void {
    if (!this.#unflushed || this.#done) return;
    this.#unflushed = false;
    this.#response.flushHeaders();
  }

  onEnd(rawTrailers: readonly string[], surplus: boolean): void {
    const connection = this.#connection;
    const whole = this.#body === undefined || this.#body.sent;
    const reusable = this.#head?.keepAlive === true && !surplus && whole;
    this.#connection = undefined;
    this.#finish();
    if (rawTrailers.length > 0) this.#addTrailers(rawTrailers);
    if (this.#final === undefined) this.#response.end();
    else this.#response.end(this.#final);
    if (connection === undefined) return;
    if (reusable) this.#keep(connection);
    else connection.destroy();
  }

  #keep(connection: UpstreamConnection): void {
    const way = this.plan.ways[this.#way];
    const hint = this.#head?.idleHintMs;
    const idleMs = Math.min(way?.idleMs ?? 0, hint === undefined ? Number.POSITIVE_INFINITY : hint - IDLE_MARGIN_MS);
    if (way === undefined || idleMs <= 0) {
      connection.destroy();
      return;
    }
    connection.release();
    this.#host.pools.give(this.plan.executionId, way.key, connection, idleMs);
  }

  #addTrailers(rawTrailers: readonly string[]): void {
    const kept = forwardableTrailers(rawTrailers);
    const pairs: [string, string][] = [];
    for (let at = 0; at + 1 < kept.length; at += 2) pairs.push([kept[at] ?? "", kept[at + 1] ?? ""]);
    try {
      this.#response.addTrailers(pairs);
    } catch {
      // The body was whole; a trailer that cannot be written is left out.
    }
  }

  onTakeover(rest: Buffer): void {
    const upgrade = this.#upgrade;
    const connection = this.#connection;
    const head = this.#head;
    if (upgrade === undefined || connection === undefined || head === undefined) return;
    const text = switchingHead(head, this.plan.keepsBack);
    const server = connection.takeOver();
    this.#connection = undefined;
    const early = upgrade.takeOver();
    upgrade.socket.write(text, "latin1");
    if (rest.length > 0) upgrade.socket.write(rest);
    if (early.length > 0) server.write(early);
    this.#splice = splice(upgrade.socket, server, () => this.#finish());
  }

  // --- endings

  onLost(cause: Error): void {
    if (this.#done) return;
    const connection = this.#connection;
    this.#connection = undefined;
    this.#body?.stop();
    if (cause instanceof ProxyFailureError) {
      this.#fail(cause.failure);
      return;
    }
    const outgoing = this.#outgoing;
    const reused = connection !== undefined && connection.uses > 1;
    if (reused && !this.#retried && this.reader.untouched && outgoing !== undefined && this.#repeatable(outgoing)) {
      this.#retried = true;
      this.reader = new ResponseReader(this.#method, this);
      this.#take(true);
      return;
    }
    if (!this.#response.headersSent) {
      this.#fail({ is: "bad_response" });
    } else if (this.#tracker?.mayAppend === true) {
      // The sandbox may be dying: whoever knows calls `end` with the reason, else this was only a lost connection.
      this.#lossTimer = setTimeout(() => void this.end(LOST, 0), this.#host.lossGraceMs);
    } else {
      this.#finish();
      this.#response.destroy();
    }
  }

  #fail(failure: Failure): void {
    if (this.#done) return;
    this.#finish();
    if (this.#response.headersSent) this.#response.destroy();
    else this.plan.refuse(this.#response, failure);
  }

  #onClientGone(): void {
    if (this.#done || this.#splice !== undefined) return;
    this.#finish();
  }

  /** Gives back everything but the response itself. */
  #finish(): void {
    if (this.#done) return;
    this.#done = true;
    clearTimeout(this.#continueTimer);
    clearTimeout(this.#lossTimer);
    this.#dialing?.abort(new Error("the exchange is over"));
    this.#body?.stop();
    this.#connection?.destroy();
    this.#connection = undefined;
    this.#host.onDone(this);
  }
}

class ProxyFailureError extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super("the node proxy answered for itself");
    this.failure = failure;
  }
}

function proxyFailure(head: ResponseHead): ProxyFailureError | undefined {
  const value = headerValue(head.rawHeaders, PROXY_ERROR_HEADER);
  if (value === undefined || !isProxyError(value)) return undefined;
  if (value === "unforwardable") {
    return new ProxyFailureError({ is: "unforwardable", message: "the request cannot be forwarded" });
  }
  return new ProxyFailureError({ is: value === "unauthorized" ? "unreachable" : value });
}

/** The 101 head for the client's raw socket, checked as Node checks every other response. */
function switchingHead(head: ResponseHead, keepsBack: (name: string) => boolean): string {
  const upgrade = headerValue(head.rawHeaders, "upgrade");
  const headers = ["Connection", "Upgrade", ...(upgrade === undefined ? [] : ["Upgrade", upgrade])];
  headers.push(...endToEnd(head.rawHeaders, (name) => name === "content-length" || keepsBack(name)));
  let text = "HTTP/1.1 101 Switching Protocols\r\n";
  try {
    for (let at = 0; at + 1 < headers.length; at += 2) {
      const name = headers[at] ?? "";
      const value = headers[at + 1] ?? "";
      validateHeaderName(name);
      validateHeaderValue(name, value);
      text += `${name}: ${value}\r\n`;
    }
  } catch {
    throw new MalformedResponseError("a header cannot be passed on");
  }
  return `${text}\r\n`;
}

/** Resolves when the response has left, or its socket is gone; destroys it after `limitMs`. */
function ended(response: ServerResponse, limitMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (response.writableFinished || response.destroyed) {
      resolve();
      return;
    }
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(() => {
      response.destroy();
      resolve();
    }, limitMs);
    response.once("finish", done);
    response.once("close", done);
  });
}

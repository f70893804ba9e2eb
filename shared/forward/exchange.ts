/** One request of a client carried to a server: which way, on which connection, what if that fails, and how it ends. */

import { type ClientRequest, type ClientResponse, type UpgradeRequest } from "./client.ts";
import { errorFrame, type StreamError } from "./connect-envelope.ts";
import type { Failure, ForwardPlan, Way } from "./forward-plan.ts";
import { isProxyError, PROXY_ERROR_HEADER } from "./hop-contract.ts";
import { headerValue, type OutgoingHead, outgoingHead, UnforwardableError } from "./raw-headers.ts";
import { RequestBody } from "./request-body.ts";
import { MalformedResponseError, type ResponseHead } from "./response-head.ts";
import { ResponseReader, type ResponseSink } from "./response-reader.ts";
import { ResponseRelay } from "./response-relay.ts";
import { type Splice, splice } from "./splice.ts";
import { switchingHead } from "./switching-head.ts";
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

export interface Client {
  readonly request: ClientRequest;
  readonly response: ClientResponse;
  readonly upgrade: UpgradeRequest | undefined;
}

export class Exchange implements ResponseSink, ConnectionUser {
  readonly plan: ForwardPlan;
  readonly #client: Client;
  readonly #host: ExchangeHost;
  readonly #relay: ResponseRelay;
  reader: ResponseReader | undefined;
  #way = 0;
  #outgoing: OutgoingHead | undefined;
  #connection: UpstreamConnection | undefined;
  #dialing: AbortController | undefined;
  #body: RequestBody | undefined;
  #continueTimer: NodeJS.Timeout | undefined;
  #lossTimer: NodeJS.Timeout | undefined;
  #head: ResponseHead | undefined;
  #splice: Splice | undefined;
  #retried = false;
  #done = false;

  constructor(host: ExchangeHost, plan: ForwardPlan, client: Client) {
    this.#host = host;
    this.plan = plan;
    this.#client = client;
    this.#relay = new ResponseRelay(client.request, client.response, plan);
  }

  start(): void {
    this.#client.response.on("close", () => {
      if (this.#splice === undefined) this.#finish();
    });
    this.#take();
  }

  /** Ends it now, whatever it is doing; resolves when the client has the last of it, or after `limitMs`. */
  end(error: StreamError, limitMs: number): Promise<void> {
    if (this.#done) return Promise.resolve();
    const { response } = this.#client;
    this.#finish();
    if (this.#splice !== undefined) {
      this.#splice.destroy();
      return Promise.resolve();
    }
    if (!response.headersSent) {
      this.plan.refuse(response, { is: "removed" });
    } else if (this.#relay.mayAppendError) {
      response.end(errorFrame(error));
    } else {
      response.destroy();
    }
    return ended(response, limitMs);
  }

  // --- towards the server

  #take(fresh = false): void {
    const way = this.plan.ways[this.#way];
    const outgoing = way === undefined ? undefined : this.#compose(way);
    if (way === undefined || outgoing === undefined) return;
    if (this.#client.upgrade === undefined && !fresh) {
      const kept = this.#host.pools.take(this.plan.executionId, way.key);
      if (kept !== undefined && (way.ours || this.#repeatable(outgoing))) {
        this.#send(kept, outgoing);
        return;
      }
      // A server that serves one connection at a time would not look at a fresh one while it holds this.
      kept?.destroy();
    }
    this.#dial(way, outgoing);
  }

  #compose(way: Way): OutgoingHead | undefined {
    try {
      const { edits, path } = this.plan;
      const { method, rawHeaders } = this.#client.request;
      const hop = { added: way.added, upgrade: this.#client.upgrade?.protocol };
      this.#outgoing = outgoingHead({ method, path, rawHeaders }, edits, hop);
      return this.#outgoing;
    } catch (error) {
      if (!(error instanceof UnforwardableError)) throw error;
      this.#fail({ is: "unforwardable", message: error.message });
      return undefined;
    }
  }

  #repeatable(outgoing: OutgoingHead): boolean {
    return outgoing.framing === "none" && IDEMPOTENT.has(this.#client.request.method);
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
        if (!this.#done) this.#onUndialable(way);
      },
    );
  }

  #onUndialable(way: Way): void {
    if (this.#way + 1 < this.plan.ways.length) {
      this.#way++;
      this.#take();
      return;
    }
    // A proxy that cannot be dialled says nothing of the server, unless the server itself was tried before.
    this.#fail({ is: way.proxied && this.#way === 0 ? "unreachable" : "closed" });
  }

  #send(connection: UpstreamConnection, outgoing: OutgoingHead): void {
    const { body, httpVersionMinor, method } = this.#client.request;
    this.#connection = connection;
    this.reader = new ResponseReader(method, this, connection.heads);
    connection.begin(this);
    connection.write(outgoing.text);
    if (outgoing.framing === "none" || body === undefined) return;
    this.#body = new RequestBody(body, connection, outgoing.framing);
    if (!outgoing.expectsContinue || httpVersionMinor === 0) this.#body.start();
    else this.#continueTimer = setTimeout(() => this.#continue(), CONTINUE_WAIT_MS);
  }

  #continue(): void {
    clearTimeout(this.#continueTimer);
    const { response } = this.#client;
    if (this.#body === undefined || this.#body.started || response.headersSent) return;
    response.writeContinue();
    this.#body.start();
  }

  onDrain(): void {
    this.#body?.resume();
  }

  // --- from the server

  onInformational(head: ResponseHead): void {
    if (head.status === 100 && this.#outgoing?.expectsContinue === true) this.#continue();
    else this.#relay.informational(head);
  }

  onHead(head: ResponseHead): boolean {
    if (this.plan.ways[this.#way]?.proxied === true) throwProxyFailure(head);
    this.#head = head;
    if (head.status === 101) {
      if (this.#client.upgrade === undefined) throw new MalformedResponseError("an upgrade nobody asked for");
      return true;
    }
    // A body that will not be asked for any more makes the client's connection useless for another request.
    if (this.#body?.started === false) this.#client.response.shouldKeepAlive = false;
    this.#relay.head(head);
    return false;
  }

  onData(chunk: Buffer, last: boolean): void {
    if (this.#relay.data(chunk, last)) return;
    this.#connection?.pause();
    this.#client.response.once("drain", () => this.#connection?.resume());
  }

  onPushed(): void {
    if (!this.#done) this.#relay.flush();
  }

  onEnd(rawTrailers: readonly string[], surplus: boolean): void {
    const connection = this.#connection;
    const whole = this.#body === undefined || this.#body.surelyRead;
    this.#connection = undefined;
    this.#finish();
    this.#relay.end(rawTrailers);
    if (connection === undefined) return;
    if (whole && !surplus && this.#head?.keepAlive === true) this.#keep(connection);
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

  onTakeover(rest: Buffer): void {
    const { upgrade } = this.#client;
    const connection = this.#connection;
    if (upgrade === undefined || connection === undefined || this.#head === undefined) return;
    const text = switchingHead(this.#head, this.plan.keepsBack);
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
    const reused = this.#connection !== undefined && this.#connection.uses > 1;
    this.#connection = undefined;
    this.#body?.stop();
    const { response } = this.#client;
    if (cause instanceof ProxyFailureError) {
      this.#fail(cause.failure);
    } else if (reused && this.#mayRetry()) {
      this.#retried = true;
      this.#take(true);
    } else if (!response.headersSent) {
      this.#fail({ is: "bad_response" });
    } else if (this.#relay.mayAppendError) {
      // The sandbox may be dying: whoever knows calls `end` with the reason, else this was only a lost connection.
      this.#lossTimer = setTimeout(() => void this.end(LOST, 0), this.#host.lossGraceMs);
    } else {
      this.#finish();
      response.destroy();
    }
  }

  /** A kept connection may have been closed by the server just before the request was written. */
  #mayRetry(): boolean {
    if (this.#retried || this.reader?.untouched !== true || this.#outgoing === undefined) return false;
    return this.#repeatable(this.#outgoing);
  }

  #fail(failure: Failure): void {
    if (this.#done) return;
    this.#finish();
    const { response } = this.#client;
    if (response.headersSent) response.destroy();
    else this.plan.refuse(response, failure);
  }

  /** Gives back everything but the response itself. */
  #finish(): void {
    if (this.#done) return;
    this.#done = true;
    clearTimeout(this.#continueTimer);
    clearTimeout(this.#lossTimer);
    this.#dialing?.abort(new Error("the exchange is over"));
    this.#body?.stop();
    this.#connection?.abort();
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

function throwProxyFailure(head: ResponseHead): void {
  const value = headerValue(head.rawHeaders, PROXY_ERROR_HEADER);
  if (value === undefined || !isProxyError(value)) return;
  if (value === "unforwardable") {
    throw new ProxyFailureError({ is: "unforwardable", message: "the request cannot be forwarded" });
  }
  throw new ProxyFailureError({ is: value === "unauthorized" ? "unreachable" : value });
}

/** Resolves when the response has left, or its socket is gone; destroys it after `limitMs`. */
function ended(response: ClientResponse, limitMs: number): Promise<void> {
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

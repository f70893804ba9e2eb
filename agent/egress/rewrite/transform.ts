/**
 * A sandbox's connection to a host with a `transform` rule: TLS ends here, every request is compared with the name of
 * the connection, gets the rule's headers, and is sent over a verified connection of this process. HTTP/1.1.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { defined } from "../../../shared/defined.ts";
import { nameOnWire } from "../../../shared/policy/names.ts";
import { sendRaw } from "../../../shared/proxy/listening/answer.ts";
import { type ClientSide, PlainClient } from "../../../shared/proxy/listening/client.ts";
import { plainHead } from "../../../shared/proxy/listening/hand-back.ts";
import { requestFault } from "../../../shared/proxy/listening/request-fault.ts";
import { RequestQueue } from "../../../shared/proxy/listening/request-queue.ts";
import { type ClientError, refusedMethod, unknownMethod } from "../../../shared/proxy/listening/unknown-method.ts";
import { MAX_UPGRADE_BODY_BYTES, openUpgrading } from "../../../shared/proxy/listening/upgrading.ts";
import { Forwarder } from "../../../shared/proxy/sending/forwarder.ts";
import type { Carried, CarriedResult, TransformOptions } from "../carry/carried.ts";
import { answerOf } from "./answer.ts";
import { clientServer, IDLE_LIMIT_MS, readRequests } from "./client-server.ts";
import { handshakeFailure } from "./handshake.ts";
import { leavesOf } from "./leaves.ts";
import { type Rewriting, rewrite } from "./plan.ts";
import { Refusal, tokens, valuesOf } from "./request-head.ts";
import { dialDestination, UpstreamError } from "./upstream.ts";

/** OpenSSL's reasons when it has no certificate for a client, which sent no name. */
const NO_CERTIFICATE = new Set(["ERR_SSL_NO_SUITABLE_SIGNATURE_ALGORITHM", "ERR_SSL_NO_SHARED_CIPHER"]);
const HANDSHAKE_LIMIT_MS = 10_000;
/** Limit from the connection's beginning to the end of its first head. */
const FIRST_HEAD_LIMIT_MS = 30_000;
/** A client that has ended its side may be gone: it is kept while bytes flow to it. */
const HALF_CLOSED_LIMIT_MS = 60_000;

/** Takes the socket over: paused or not yet read, errors included. */
export function transform(socket: Socket, options: TransformOptions): Carried {
  const { hostname, port, tls, first } = options;
  const destination = { hostname, port, tls };
  const upstream = { ...destination, connect: () => options.connect(), trust: options.trust };
  const forwarder = new Forwarder({ lossGraceMs: 0 });
  const state: { failed?: string } = {};
  const failed = (reason: string) => {
    state.failed = reason;
  };
  const closed = new Promise<CarriedResult>((resolve) => {
    const end = () => {
      forwarder.connections.end();
      resolve({ sent: socket.bytesRead, received: socket.bytesWritten, ...state });
    };
    if (socket.closed) end();
    else socket.once("close", end);
  });
  // The listener of `close` sees the end; a reset by the sandbox is not worth a message.
  socket.on("error", () => undefined);
  socket.setNoDelay(true);
  socket.allowHalfOpen = true;
  limitHalfClosed(socket);
  if (first.length > 0) socket.unshift(first);
  const { headers, allowPlainHttp, resolve, proxied } = options;
  const rewriting = {
    destination,
    headers,
    resolve,
    forwarder,
    failed,
    dial: (signal: AbortSignal) => dialDestination(upstream, signal),
    valuesAllowed: tls || allowPlainHttp === true,
    ...defined({ proxied }),
  };
  if (tls) {
    // Holds where the connection ends before there is an error.
    failed(handshakeFailure({ code: "ECONNRESET" }));
    terminate(socket, options).then(
      (secure) => {
        delete state.failed;
        serve(secure, rewriting);
      },
      (error: unknown) => {
        failed(handshakeFailure(error));
        socket.destroy();
      },
    );
  } else serve(socket, rewriting, options.once);
  return {
    closed,
    destroy: () => {
      socket.destroy();
      forwarder.connections.end();
    },
  };
}

function limitHalfClosed(socket: Socket): void {
  socket.once("end", () => {
    let written = socket.bytesWritten;
    const look = setInterval(() => {
      if (socket.bytesWritten === written) socket.destroy();
      written = socket.bytesWritten;
    }, HALF_CLOSED_LIMIT_MS);
    socket.once("close", () => clearInterval(look));
  });
}

/** Resolves after the handshake. */
async function terminate(socket: Socket, { hostname, authority }: TransformOptions): Promise<TLSSocket> {
  const secureContext = await leavesOf(authority).get(hostname);
  // A client that ends its side in the handshake has left: it does not trust the certificate, for one.
  socket.allowHalfOpen = false;
  return new Promise((resolve, reject) => {
    const server = createTlsServer({
      handshakeTimeout: HANDSHAKE_LIMIT_MS,
      // HTTP/2 is negotiated down; the handshake fails for a client that speaks nothing else.
      ALPNProtocols: ["http/1.1"],
      // The server has no certificate besides this one: a client that sends no name cannot complete the handshake.
      SNICallback: (name, done) => {
        if (nameOnWire(name) === hostname) done(null, secureContext);
        else done(new UpstreamError("another name than the connection's"));
      },
    });
    server.once("tlsClientError", (error, secure) => {
      secure.destroy();
      socket.destroy();
      const nameless = NO_CERTIFICATE.has((error as NodeJS.ErrnoException).code ?? "");
      reject(nameless ? new UpstreamError("without the name of the connection") : error);
    });
    socket.once("close", () => reject(new UpstreamError("closed")));
    server.once("secureConnection", (secure) => {
      secure.allowHalfOpen = true;
      // The sandbox's resets are not worth a message.
      secure.on("error", () => undefined);
      resolve(secure);
    });
    server.emit("connection", socket);
  });
}

/** One HTTP server per connection, so that its state belongs to one client. */
function serve(socket: Socket, rewriting: Rewriting, once = false): void {
  const queue = new RequestQueue();
  /** The requests that are not answered, with their answers. */
  const waiting = new Map<IncomingMessage, ServerResponse>();
  /** Writes the answer to a request to upgrade that was declined. */
  let declined: ((response: ServerResponse) => void) | undefined;
  let clock: NodeJS.Timeout | undefined;
  /** The client's bytes were no request, and it gets an answer for that. */
  let isRefused = false;
  const wait = (limitMs: number) => {
    clearTimeout(clock);
    clock = setTimeout(() => socket.destroy(), limitMs);
  };

  const server = clientServer();
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    clearTimeout(clock);
    response.sendDate = false;
    if (once) response.shouldKeepAlive = false;
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    if (declined !== undefined) {
      declined(response);
      return;
    }
    waiting.set(request, response);
    response.once("close", () => {
      waiting.delete(request);
      if (waiting.size > 0 || socket.destroyed) return;
      wait(IDLE_LIMIT_MS);
      end.answered();
    });
    queue.take(socket, response, () => void rewrite(new PlainClient(request, response), rewriting));
  };
  server.on("request", onRequest);
  server.on("checkContinue", onRequest);
  // Whether the destination knows what else is expected of it, the destination says.
  server.on("checkExpectation", onRequest);
  server.on("connect", (_request, client: Socket) => {
    clearTimeout(clock);
    end.release();
    refuseRaw(client, 400, "CONNECT is not possible here");
  });
  server.on("upgrade", (request, client: Socket, early: Buffer) => {
    clearTimeout(clock);
    end.release();
    if (waiting.size > 0) return void client.destroy();
    const protocol = wantedProtocols(request.rawHeaders).join(", ");
    if (protocol === "") {
      // A client may offer one with each request of its connection, which would keep each of these servers until its end.
      socket.off("close", onClose);
      client.unshift(Buffer.concat([plainHead(request, false), early]));
      serve(client, rewriting, once);
      return;
    }
    const [length = "0", coding] = ["content-length", "transfer-encoding"].map(
      (name) => valuesOf(request.rawHeaders, name)[0],
    );
    const bodyBytes = Number(length);
    // The HTTP server has released the socket.
    client.on("error", () => undefined);
    if (coding !== undefined || bodyBytes > MAX_UPGRADE_BODY_BYTES) {
      const text = "the body of a request to switch protocols has a Content-Length, of 64 KiB at most";
      rewriting.failed(text);
      refuseRaw(client, 400, text);
      return;
    }
    const answer = (write: (response: ServerResponse) => void) => {
      declined = write;
      client.unshift(plainHead(request, true));
      // The connection ends with this answer.
      readRequests(server, client, () => true);
      client.resume();
    };
    const onWhole = (side: ClientSide) => void rewrite(side, rewriting);
    openUpgrading({ request, socket: client, protocol, early, bodyBytes, watches: false, onWhole, answer });
  });
  server.on("clientError", (error: ClientError, client) => {
    const method = unknownMethod(error);
    const fault = requestFault(error);
    const refuse = (status: number, text: string) => {
      isRefused = true;
      refuseRaw(client, status, text);
    };
    // Each packet behind the fault is an error again. A close with unread bytes would reset the connection, and the client lose the answer.
    if (isRefused && error.code !== "ECONNRESET") return;
    // When this event arrives, every answer that was due has been sent.
    if (waiting.size > 0 && !isBrokenBody([...waiting])) setImmediate(() => (client as Socket).destroySoon());
    else if (error.code === "ECONNRESET" || !client.writable) client.destroy();
    else if (error.code === "HPE_HEADER_OVERFLOW") refuse(431, "the head of the request is too long");
    else if (method !== undefined) refuse(501, refusedMethod(method));
    else refuse(400, `this is not an HTTP/1.1 request${fault === undefined ? "" : `: ${fault}`}`);
  });

  const onClose = () => clearTimeout(clock);
  socket.once("close", onClose);
  if (socket.destroyed) return;
  wait(FIRST_HEAD_LIMIT_MS);
  // A request whose rest cannot come any more is given up at once.
  const answering = () => waiting.size > 0 && [...waiting.keys()].every((request) => request.complete);
  const end = readRequests(server, socket, answering);
  // The socket may be paused. Bytes that were put back are read before new ones.
  socket.resume();
}

/** Whether the bytes belong to the body of the one request under way, whose client has read nothing of an answer. */
function isBrokenBody([first, ...more]: readonly (readonly [IncomingMessage, ServerResponse])[]): boolean {
  return first !== undefined && more.length === 0 && !first[0].complete && !first[1].headersSent;
}

function refuseRaw(client: Duplex, status: number, text: string): void {
  sendRaw(client, answerOf(new Refusal(status, text)));
}

/** Upgrades that are ignored: this process speaks HTTP/1.1, checks each request's host, and begins no TLS inside. */
const IGNORED = /^(h2c?|(http|tls)\/[\d.]+)$/;

function wantedProtocols(rawHeaders: readonly string[]): readonly string[] {
  const protocols = valuesOf(rawHeaders, "upgrade").flatMap((value) => tokens(value));
  return protocols.filter((protocol) => protocol !== "" && !IGNORED.test(protocol));
}

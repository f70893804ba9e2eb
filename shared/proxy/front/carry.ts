/** Carries one stream of HTTP/2 over a connection of HTTP/1.1 within the program, by Node's own client: no parser of ours. */

import { type ClientRequest, type IncomingMessage, request as openRequest } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import { MAX_HEAD_BYTES } from "../limits.ts";
import { bodyCodings, fieldsOf, type StreamRequest, streamHeaders } from "./stream-headers.ts";

/** How long a client may go on sending behind the whole answer. */
const DRAIN_MS = 1_000;
/** The last status that Node writes by HTTP/2. */
const LAST_STATUS = 599;

const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;

/** @param connection to the server, for this exchange alone */
export function carry(stream: ServerHttp2Stream, asked: StreamRequest, connection: Duplex): void {
  connection.on("error", ignore);
  const call = opened(asked, connection);
  if (call === undefined) {
    connection.destroy();
    stream.respond({ ":status": 400, "content-type": "text/plain; charset=utf-8" });
    stream.end("the request has a header that HTTP/1.1 cannot carry\n");
    return;
  }
  const state = { answered: false };
  call.on("continue", () => inform(stream, 100, []));
  call.on("information", ({ statusCode, rawHeaders }) => inform(stream, statusCode, rawHeaders));
  call.once("response", (answer) => {
    state.answered = true;
    relay(stream, answer);
  });
  // Behind the answer the server may close while the client still sends.
  call.on("error", () => {
    if (!state.answered) fail(stream);
  });
  stream.once("close", () => connection.destroy());
  // A client that resets its stream has left, and the server must learn of it.
  stream.once("aborted", () => connection.destroy());
  send(stream, call);
}

/** Undefined for a head that Node's client refuses to write. */
function opened({ method, path, headers }: StreamRequest, connection: Duplex): ClientRequest | undefined {
  try {
    return openRequest({
      method,
      path,
      headers,
      createConnection: () => connection,
      maxHeaderSize: MAX_HEAD_BYTES,
    } as unknown as Parameters<typeof openRequest>[0]);
  } catch {
    return undefined;
  }
}

function send(stream: ServerHttp2Stream, call: ClientRequest): void {
  stream.on("error", ignore);
  if (stream.endAfterHeaders) {
    call.end();
    return;
  }
  call.flushHeaders();
  stream.once("trailers", (trailers) => {
    const fields = Object.entries(trailers).filter(([name]) => !name.startsWith(":"));
    call.addTrailers(fields.map(([name, value = ""]): [string, string] => [name, [value].flat().join(", ")]));
  });
  stream.pipe(call);
  // What the server does not read any more is thrown away, so that the client is not held up.
  call.once("close", () => {
    stream.unpipe(call);
    stream.resume();
  });
}

function relay(stream: ServerHttp2Stream, answer: IncomingMessage): void {
  if (stream.destroyed || stream.closed) {
    answer.destroy();
    return;
  }
  answer.on("error", ignore);
  const codings = bodyCodings(answer.rawHeaders);
  if (codings.length > 0) {
    answer.destroy();
    fail(stream, `the server's answer has the transfer coding ${codings.join(", ")}, which HTTP/2 cannot carry`);
    return;
  }
  const { statusCode = 502 } = answer;
  try {
    stream.respond(streamHeaders(statusCode, answer.rawHeaders), { waitForTrailers: true });
  } catch {
    answer.destroy();
    const what = statusCode > LAST_STATUS ? `the status ${statusCode}` : "a header";
    fail(stream, `the server's answer has ${what} that HTTP/2 cannot carry`);
    return;
  }
  stream.once("wantTrailers", () => {
    sendTrailers(stream, answer);
    if (stream.readableEnded) return;
    // The answer is whole, and nobody reads the rest of the request: the client is told to stop (RFC 9113 §8.1).
    const limit = setTimeout(() => stream.close(NGHTTP2_NO_ERROR), DRAIN_MS);
    stream.once("close", () => clearTimeout(limit));
  });
  answer.once("close", () => {
    // An answer that breaks off must not look complete.
    if (!answer.complete && !stream.destroyed) stream.close(NGHTTP2_INTERNAL_ERROR);
  });
  // An answer without a body has ended the stream already.
  if (stream.writableEnded) answer.resume();
  else answer.pipe(stream);
}

/** The body is complete: trailers that cannot be written are left out. */
function sendTrailers(stream: ServerHttp2Stream, { rawTrailers }: IncomingMessage): void {
  try {
    stream.sendTrailers(fieldsOf(rawTrailers));
  } catch {
    stream.sendTrailers({});
  }
}

function inform(stream: ServerHttp2Stream, status: number, rawHeaders: readonly string[]): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  try {
    stream.additionalHeaders(streamHeaders(status, rawHeaders));
  } catch {
    // It is only a hint.
  }
}

function fail(stream: ServerHttp2Stream, message = "the connection was closed without an answer"): void {
  if (stream.destroyed || stream.closed) return;
  if (stream.headersSent) {
    stream.close(NGHTTP2_CANCEL);
    return;
  }
  stream.respond({ ":status": 502, "content-type": "application/json; charset=utf-8" });
  stream.end(JSON.stringify({ code: 502, message }));
}

/** "close" follows, and ends the exchange. */
function ignore(): void {}

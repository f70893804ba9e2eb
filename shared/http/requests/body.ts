/** Bodies of requests to the platform's servers: enforces a pace on a body that is read, and ends an unread one. */

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { type Readable, Transform } from "node:stream";
import { AppError } from "../errors.ts";

/** The slowest rate at which a body may arrive. */
export interface BodyPace {
  /** Bytes that must come in every `everyMs`, unless the body ends. */
  readonly leastBytes: number;
  readonly everyMs: number;
}

/** Most bytes that are discarded of an unread body after its request is answered. */
const MOST_DRAINED_BYTES = 64 * 1024;
/** How long an unread body is discarded, so that a client that still sends can read the answer, before the close. */
const DRAIN_MS = 1_000;

/** Whether bytes of this request's body are still to come. */
export function isUnread(request: IncomingMessage): boolean {
  if (request.complete) return false;
  const { headers } = request;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/**
 * The body of `request`, which fails with AppError `request_timeout` when it arrives more slowly than `pace` allows. Time
 * in which the reader does not read does not count: a slow disk is not the client's fault.
 */
export function pacedBody(request: Readable, pace: BodyPace): Readable {
  const came = { bytes: 0 };
  const body = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      came.bytes += chunk.length;
      done(null, chunk);
    },
  });
  // The timer may fire when nothing reads the body any more: without a listener the error would end the process.
  body.on("error", () => request.unpipe(body));
  const timer = setInterval(() => {
    if (came.bytes < pace.leastBytes && !body.writableNeedDrain) {
      const seconds = pace.everyMs / 1_000;
      const message = `the body must bring at least ${pace.leastBytes} bytes every ${seconds} s`;
      body.destroy(new AppError("request_timeout", message));
    }
    came.bytes = 0;
  }, pace.everyMs);
  const stop = () => clearInterval(timer);
  body.once("close", stop);
  request.once("close", stop);
  request.once("end", stop);
  // Node reports a client that disconnects as an error, when there is a listener.
  request.on("error", (error) => body.destroy(error));
  request.pipe(body);
  return body;
}

/**
 * Closes the connection when its last answer (one with `Connection: close`) is sent: the sending side at once, all of it
 * after a second or 64 KiB. An immediate close would make the kernel discard an answer that the client has not read yet.
 */
export function closeGently(socket: Socket): void {
  socket.destroySoon = () => {
    const drained = { bytes: 0 };
    // The parser must not see further bytes: it would begin the next request of a connection that answers none.
    socket.removeAllListeners("data");
    socket.on("data", (chunk: Buffer) => {
      drained.bytes += chunk.length;
      if (drained.bytes > MOST_DRAINED_BYTES) socket.destroy();
    });
    const timer = setTimeout(() => socket.destroy(), DRAIN_MS);
    socket.once("close", () => clearTimeout(timer));
    socket.once("end", () => socket.destroy());
    socket.end();
    socket.resume();
  };
}

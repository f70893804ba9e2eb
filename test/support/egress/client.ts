/**
 * Makes the connections that the parent process orders over IPC, from this process's network namespace, and reports the
 * results.
 */

import { createSocket } from "node:dgram";
import { connect } from "node:net";

export interface Attempt {
  readonly address: string;
  readonly port: number;
  /** The texts to send, one after the other, each in a packet of its own. */
  readonly send?: readonly string[];
  /** Ends the sending direction after the texts, and reads on. */
  readonly end?: boolean;
  /** Ends the connection when this text has come; without it the attempt ends with the connection. */
  readonly until?: string;
  readonly limitMs?: number;
  /** Reads nothing. */
  readonly lazy?: boolean;
  /** A base64 datagram to send in place of a connection; one datagram answers it. */
  readonly datagram?: string;
}

export interface Outcome {
  /** The received text in Latin-1, or a datagram in base64; only the beginning of a long one. */
  readonly received: string;
  readonly bytes: number;
  readonly how: "end" | "reset" | "seen" | "late";
  readonly code?: string;
  readonly ms: number;
}

function attempt({ address, port, send = [], end, until, lazy, limitMs = 20_000 }: Attempt): Promise<Outcome> {
  return new Promise((resolve) => {
    const began = performance.now();
    const kept: Buffer[] = [];
    let bytes = 0;
    const text = () => Buffer.concat(kept).toString("latin1");
    // The socket reuses this buffer: the callback looks at its content before the next read.
    const onread = {
      buffer: Buffer.alloc(1 << 20),
      callback: (length: number, chunk: Uint8Array) => saw(chunk, length),
    };
    const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true, onread });
    if (lazy === true) socket.pause();
    const finish = (how: Outcome["how"], code?: string) => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ received: text(), bytes, how, ms: performance.now() - began, ...(code === undefined ? {} : { code }) });
    };
    const timer = setTimeout(() => finish("late"), limitMs);
    socket.on("error", (error: NodeJS.ErrnoException) => finish("reset", error.code));
    const saw = (chunk: Uint8Array, length: number) => {
      bytes += length;
      if (bytes < 100_000) kept.push(Buffer.from(chunk.subarray(0, length)));
      if (until !== undefined && text().includes(until)) finish("seen");
      return lazy !== true;
    };
    socket.on("end", () => finish("end"));
    const next = (index: number) => {
      const chunk = send[index];
      if (chunk !== undefined) socket.write(Buffer.from(chunk, "latin1"), () => setImmediate(next, index + 1));
      else if (end === true) socket.end();
    };
    socket.once("connect", () => next(0));
  });
}

function datagram(payload: string, { address, port, limitMs = 2_000 }: Attempt): Promise<Outcome> {
  return new Promise((resolve) => {
    const began = performance.now();
    const socket = createSocket("udp4");
    const finish = (how: Outcome["how"], received: string) => {
      clearTimeout(timer);
      socket.close();
      resolve({ received, bytes: received.length, how, ms: performance.now() - began });
    };
    const timer = setTimeout(() => finish("late", ""), limitMs);
    socket.on("message", (message) => finish("seen", message.toString("base64")));
    socket.send(Buffer.from(payload, "base64"), port, address);
  });
}

process.on("message", (message) => {
  const { id, attempt: what } = message as { id: number; attempt: Attempt };
  const made = what.datagram === undefined ? attempt(what) : datagram(what.datagram, what);
  void made.then((outcome) => process.send?.({ id, outcome }));
});
process.once("disconnect", () => process.exit(0));

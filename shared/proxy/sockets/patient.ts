/** Lets an answer be read that a server sent before it stopped reading its request. */

import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** The server has closed its side: what it sent before is still in our socket. */
const CLOSED: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

type Done = (error?: Error | null) => void;

const patient = new WeakSet<Duplex>();
const failed = new WeakSet<Duplex>();

/**
 * Makes a failed write no error of the socket. A server that answers an upload early (413) and closes makes the next write
 * fail, and Node would destroy the socket with the answer unread in it. What is written from then on is lost, as it would be
 * anyway; the reading side then reports the end or the reset, which the kernel has at once.
 */
export function readDespiteFailedWrites<T extends Socket>(socket: T): T {
  if (patient.has(socket)) return socket;
  patient.add(socket);
  const forgiving =
    (done: Done): Done =>
    (error) => {
      if (!isClosed(error)) return done(error);
      failed.add(socket);
      done();
    };
  const write = socket._write.bind(socket);
  socket._write = (chunk, encoding, done) => write(chunk, encoding, forgiving(done));
  const writeMany = socket._writev?.bind(socket);
  if (writeMany !== undefined) socket._writev = (chunks, done) => writeMany(chunks, forgiving(done));
  return socket;
}

/** A write has failed. The kernel reports a reset once: the reading side may then see an orderly end, which it is not. */
export function hasFailedWrite(socket: Duplex): boolean {
  return failed.has(socket);
}

function isClosed(error: NodeJS.ErrnoException | null | undefined): boolean {
  return CLOSED.has(error?.code ?? "");
}

/** Connection pools towards servers, on Node's HTTP agent: dialled by this program, kept only when that is safe. */

import { Agent, type ClientRequestArgs } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

const MAX_IDLE = 64;

/** No connection could be opened: no byte of the request has been sent. */
export class DialError extends Error {
  override readonly name = "DialError";
}

export interface DialledOptions {
  dial(signal: AbortSignal): Promise<Socket>;
  /** False: every request gets its own connection, and its headers announce that. */
  readonly keeps: boolean;
  onOpen(socket: Socket): void;
}

export class DialledAgent extends Agent {
  readonly #options: DialledOptions;
  /** How long the connection may be idle after the current response, milliseconds. */
  readonly #idleMs = new WeakMap<Duplex, number>();

  constructor(options: DialledOptions) {
    super({ keepAlive: options.keeps, maxFreeSockets: MAX_IDLE, scheduling: "lifo" });
    this.#options = options;
  }

  /** The current request leaves its connection fit for another one. Without this call the connection is closed. */
  mayKeep(socket: Duplex, idleMs: number): void {
    this.#idleMs.set(socket, idleMs);
  }

  /** Closes idle connections: one, for a server that serves one at a time, or all. */
  dropIdle(all: boolean): void {
    const idle = Object.values(this.freeSockets).flatMap((sockets) => sockets ?? []);
    for (const socket of all ? idle : idle.slice(-1)) socket.destroy();
  }

  /** Node calls this for a request that finds no idle connection. */
  override createConnection(args: ClientRequestArgs, done?: (error: Error | null, stream: Duplex) => void): undefined {
    // Node uses one of the two.
    const answer = done as ((error: Error | null, stream?: Duplex) => void) | undefined;
    this.#options.dial(args.signal ?? new AbortController().signal).then(
      (socket) => {
        this.#options.onOpen(socket);
        answer?.(null, socket);
      },
      (cause: unknown) => answer?.(new DialError("no connection could be opened", { cause })),
    );
  }

  /** Node calls this when a response is over. */
  override keepSocketAlive(socket: Duplex): boolean {
    const idleMs = this.#idleMs.get(socket);
    this.#idleMs.delete(socket);
    if (idleMs === undefined || idleMs <= 0) return false;
    (socket as Socket).setTimeout(idleMs);
    socket.on("data", unasked);
    socket.on("end", unasked);
    return true;
  }

  /** Node calls this before an idle connection carries the next request. */
  override reuseSocket(socket: Duplex, request: Parameters<Agent["reuseSocket"]>[1]): void {
    socket.removeListener("data", unasked);
    socket.removeListener("end", unasked);
    (socket as Socket).setTimeout(0);
    super.reuseSocket(socket, request);
  }
}

/** Bytes that arrive without a request must never become the answer to the next request. */
function unasked(this: Duplex): void {
  this.destroy();
}

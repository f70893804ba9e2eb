/** Connections towards servers, as Node's HTTP client keeps them: dialled by us, and kept only when that is safe. */

import { Agent, type ClientRequestArgs } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

const MAX_IDLE = 64;

/** No connection could be opened: nothing of the request has been sent. */
export class DialError extends Error {
  override readonly name = "DialError";
}

export interface DialledOptions {
  dial(signal: AbortSignal): Promise<Socket>;
  /** False: every request gets a connection of its own and says so to the server. */
  readonly keeps: boolean;
  onOpen(socket: Socket): void;
}

export class DialledAgent extends Agent {
  readonly #options: DialledOptions;
  /** How long the connection may be idle after the response now being read, milliseconds. */
  readonly #idleMs = new WeakMap<Duplex, number>();

  constructor(options: DialledOptions) {
    super({ keepAlive: options.keeps, maxFreeSockets: MAX_IDLE, scheduling: "lifo" });
    this.#options = options;
  }

  /** The request that is on this connection leaves it fit for another. Without this call it is closed. */
  mayKeep(socket: Duplex, idleMs: number): void {
    this.#idleMs.set(socket, idleMs);
  }

  /** Closes what is idle: one connection, for a server that serves one at a time, or all of them. */
  dropIdle(all: boolean): void {
    const idle = Object.values(this.freeSockets).flatMap((sockets) => sockets ?? []);
    for (const socket of all ? idle : idle.slice(-1)) socket.destroy();
  }

  /** Called by Node for a request that finds no idle connection. */
  override createConnection(args: ClientRequestArgs, done?: (error: Error | null, stream: Duplex) => void): undefined {
    // Node looks at one of the two.
    const answer = done as ((error: Error | null, stream?: Duplex) => void) | undefined;
    this.#options.dial(args.signal ?? new AbortController().signal).then(
      (socket) => {
        this.#options.onOpen(socket);
        answer?.(null, socket);
      },
      (cause: unknown) => answer?.(new DialError("no connection could be opened", { cause })),
    );
  }

  /** Called by Node when a response is over. */
  override keepSocketAlive(socket: Duplex): boolean {
    const idleMs = this.#idleMs.get(socket);
    this.#idleMs.delete(socket);
    if (idleMs === undefined || idleMs <= 0) return false;
    (socket as Socket).setTimeout(idleMs);
    socket.on("data", unasked);
    socket.on("end", unasked);
    return true;
  }

  /** Called by Node before an idle connection carries the next request. */
  override reuseSocket(socket: Duplex, request: Parameters<Agent["reuseSocket"]>[1]): void {
    socket.removeListener("data", unasked);
    socket.removeListener("end", unasked);
    (socket as Socket).setTimeout(0);
    super.reuseSocket(socket, request);
  }
}

/** An answer to nothing must never become the answer to the next request. */
function unasked(this: Duplex): void {
  this.destroy();
}

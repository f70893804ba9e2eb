/** Connection pools towards servers, on Node's HTTP agent: dialled by this program, kept only when that is safe. */

import { Agent, type ClientRequestArgs } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

const MAX_IDLE = 64;

/** No connection could be opened: no byte of the request has been sent. */
export class DialError extends Error {
  override readonly name = "DialError";
}

/** A request to a `DialledAgent`. */
export interface DialledArgs extends ClientRequestArgs {
  /** Called when no idle connection is left: the signal ends the dialling. Absent: only the dial's own limit ends it. */
  dialSignal?: () => AbortSignal;
}

export interface DialledOptions {
  dial(signal: AbortSignal): Promise<Socket>;
  /** False: every request gets its own connection, and its headers announce that. */
  readonly keeps: boolean;
  onOpen(socket: Socket): void;
}

/** The agent's record of one connection. */
interface Kept {
  idle: boolean;
  /** How long it may be idle after the current response, milliseconds; 0: it is closed then. */
  idleMs: number;
  watched: boolean;
}

export class DialledAgent extends Agent {
  readonly #options: DialledOptions;
  readonly #kept = new WeakMap<Duplex, Kept>();

  constructor(options: DialledOptions) {
    super({ keepAlive: options.keeps, maxFreeSockets: MAX_IDLE, scheduling: "lifo" });
    this.#options = options;
  }

  /** Marks the connection as reusable after its current request. Without this call the connection is closed. */
  mayKeep(socket: Duplex, idleMs: number): void {
    const kept = this.#kept.get(socket);
    if (kept !== undefined) kept.idleMs = idleMs;
  }

  /** Closes idle connections: one, for a server that serves one at a time, or all. */
  dropIdle(all: boolean): void {
    const idle = Object.values(this.freeSockets).flatMap((sockets) => sockets ?? []);
    for (const socket of all ? idle : idle.slice(-1)) socket.destroy();
  }

  /** It has no connection, neither idle nor in use. */
  get isEmpty(): boolean {
    const all = [...Object.values(this.sockets), ...Object.values(this.freeSockets)];
    return all.every((sockets) => (sockets ?? []).length === 0);
  }

  /** All connections of this agent lead to one server. */
  override getName(): string {
    return "server";
  }

  /** Node calls this for a request that finds no idle connection. */
  override createConnection(args: DialledArgs, done?: (error: Error | null, stream: Duplex) => void): undefined {
    // Node reads either the error or the stream, although its types require both.
    const answer = done as ((error: Error | null, stream?: Duplex) => void) | undefined;
    const signal = args.dialSignal?.() ?? new AbortController().signal;
    // Node keeps the arguments for as long as the connection lives, and through this one the exchange that has opened it.
    delete args.dialSignal;
    this.open(signal).then(
      (socket) => answer?.(null, socket),
      (error: Error) => answer?.(error),
    );
  }

  /** Opens a connection that this agent does not use itself. @throws {DialError} */
  async open(signal: AbortSignal): Promise<Socket> {
    const socket = await this.#options.dial(signal).catch((cause: unknown) => {
      throw new DialError("no connection could be opened", { cause });
    });
    this.#kept.set(socket, { idle: false, idleMs: 0, watched: false });
    this.#options.onOpen(socket);
    return socket;
  }

  /** Node calls this when a response has ended. */
  override keepSocketAlive(socket: Duplex): boolean {
    const kept = this.#kept.get(socket);
    if (kept === undefined || kept.idleMs <= 0) return false;
    // The timeout need not be cleared: Node's agent closes a connection at its timeout only while the connection is idle.
    (socket as Socket).setTimeout(kept.idleMs);
    kept.idle = true;
    kept.idleMs = 0;
    if (!kept.watched) watch(socket, kept);
    return true;
  }

  /** Node calls this before an idle connection carries the next request. */
  override reuseSocket(socket: Duplex, request: Parameters<Agent["reuseSocket"]>[1]): void {
    const kept = this.#kept.get(socket);
    if (kept !== undefined) kept.idle = false;
    super.reuseSocket(socket, request);
  }
}

/** Bytes that arrive without a request must never become the answer to the next request. */
function watch(socket: Duplex, kept: Kept): void {
  kept.watched = true;
  const unasked = () => {
    if (kept.idle) socket.destroy();
  };
  socket.on("data", unasked);
  socket.on("end", unasked);
}

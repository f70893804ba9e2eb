/** One connection towards a server, carrying one exchange at a time. Knows sockets; knows nothing of clients or pools. */

import type { Duplex } from "node:stream";
import { cut } from "./cut.ts";
import { HeadReader, MalformedResponseError } from "./response-head.ts";
import type { ResponseReader } from "./response-reader.ts";

export interface ConnectionUser {
  /** Reads the response; there from `begin` on. */
  readonly reader: ResponseReader | undefined;
  /** The connection is of no more use; `cause` is a MalformedResponseError or the socket's error. Called at most once. */
  onLost(cause: Error): void;
  onDrain(): void;
  /** Everything that was read at once has been handed over: a good moment to flush. */
  onPushed(): void;
}

export class UpstreamConnection {
  readonly #socket: Duplex;
  #user: ConnectionUser | undefined;
  #dead = false;
  readonly heads = new HeadReader();
  /** Requests carried so far. */
  uses = 0;
  /** Set while idle, milliseconds of `performance.now()`. */
  idleUntil = 0;
  /** Called once, when the socket is gone. */
  onGone: () => void = () => undefined;

  constructor(socket: Duplex) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#onData(chunk));
    socket.on("end", () => this.#onEnd());
    socket.on("error", (error: Error) => this.#lose(error));
    socket.on("close", () => {
      this.#lose(new Error("the connection was closed"));
      this.onGone();
    });
    socket.on("drain", () => this.#user?.onDrain());
    // Whoever dialled may have paused it, so that nothing is lost on the way here.
    socket.resume();
  }

  get usable(): boolean {
    return !this.#dead && !this.#socket.destroyed;
  }

  begin(user: ConnectionUser): void {
    this.#user = user;
    this.uses++;
  }

  /** The exchange is over; the connection may carry another. */
  release(): void {
    this.#user = undefined;
    this.#socket.resume();
  }

  /** Returns false when the caller should wait for `onDrain`. */
  write(data: string | Buffer): boolean {
    return typeof data === "string" ? this.#socket.write(data, "latin1") : this.#socket.write(data);
  }

  /** What is written until `uncork` leaves in one system call. */
  cork(): void {
    this.#socket.cork();
  }

  uncork(): void {
    this.#socket.uncork();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Hands the socket over: no listener of ours remains but the one that reports the close. */
  takeOver(): Duplex {
    this.#user = undefined;
    this.#dead = true;
    for (const event of ["data", "end", "error", "drain"]) this.#socket.removeAllListeners(event);
    return this.#socket;
  }

  /** Closes it; the server has answered all it was asked. */
  destroy(): void {
    this.#dead = true;
    this.#user = undefined;
    this.#socket.destroy();
  }

  /** Breaks it off in the middle of something. */
  abort(): void {
    this.#dead = true;
    this.#user = undefined;
    cut(this.#socket);
  }

  #onData(chunk: Buffer): void {
    const user = this.#user;
    if (user === undefined) {
      // Nobody asked: an answer to nothing must never become the answer to the next request.
      this.destroy();
      return;
    }
    try {
      user.reader?.push(chunk);
      user.onPushed();
    } catch (error) {
      this.#lose(error instanceof Error ? error : new MalformedResponseError(String(error)));
    }
  }

  #onEnd(): void {
    const user = this.#user;
    if (user === undefined) {
      this.destroy();
      return;
    }
    try {
      user.reader?.finish();
      this.destroy();
    } catch (error) {
      this.#lose(error instanceof Error ? error : new MalformedResponseError(String(error)));
    }
  }

  #lose(cause: Error): void {
    const user = this.#user;
    this.destroy();
    user?.onLost(cause);
  }
}

/**
 * A client's connection until the first request that is not simple: then Node's parser gets it for good, with every byte
 * that has not been answered. Simple requests are two thirds of the work of a proxy and need a third of the machinery.
 */

import type { Socket } from "node:net";
import type { Handler } from "./client.ts";
import { SimpleReader } from "./simple-request.ts";
import { SimpleResponse } from "./simple-response.ts";

const FIRST_BYTES_MS = 60_000;
/** Longer than the keep-alive of the clients we know, so that we never close under a request. */
const IDLE_MS = 620_000;

export class FrontConnection {
  readonly #socket: Socket;
  readonly #handle: Handler;
  readonly #parse: () => void;
  readonly #reader = new SimpleReader();
  #answering: SimpleResponse | undefined;
  /** Came while a request was being answered. */
  #waiting: Buffer | undefined;
  #stopping = false;

  /** `parse` hands the socket to Node's parser; what is to be read first has been put back by then. */
  constructor(socket: Socket, handle: Handler, parse: () => void) {
    this.#socket = socket;
    this.#handle = handle;
    this.#parse = parse;
    socket.setTimeout(FIRST_BYTES_MS);
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("timeout", this.#onTimeout);
    socket.on("drain", this.#onDrain);
    socket.on("error", this.#onEnd);
    socket.on("close", this.#onClose);
  }

  /** Closes it now when nothing is under way, else after the answer. */
  closeIfIdle(): void {
    this.#stopping = true;
    if (this.#answering === undefined && this.#socket.listeners("data").includes(this.#onData)) this.#socket.destroy();
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#answering === undefined) {
      this.#take(chunk);
      return;
    }
    // One request at a time; the next is read when this one has its answer.
    this.#waiting = this.#waiting === undefined ? chunk : Buffer.concat([this.#waiting, chunk]);
    this.#socket.pause();
  };

  /** A client that ends its side has left: nobody half-closes and waits, and streams must learn of it. */
  readonly #onEnd = (): void => {
    this.#socket.destroy();
  };

  readonly #onTimeout = (): void => {
    if (this.#answering === undefined) this.#socket.destroy();
  };

  readonly #onDrain = (): void => {
    this.#answering?.onSocketDrain();
  };

  readonly #onClose = (): void => {
    this.#answering?.onSocketClose();
  };

  #take(chunk: Buffer): void {
    const request = this.#reader.read(chunk);
    if (request === undefined) {
      this.#handOver(chunk);
      return;
    }
    const response = new SimpleResponse(this.#socket, {
      head: request.method === "HEAD",
      keepAlive: request.keepAlive && !this.#stopping,
    });
    this.#answering = response;
    response.once("finish", this.#onAnswered);
    this.#handle(request, response);
  }

  readonly #onAnswered = (): void => {
    const again = this.#answering?.shouldKeepAlive === true && !this.#stopping;
    this.#answering = undefined;
    if (!again) {
      this.#socket.destroySoon();
      return;
    }
    if (this.#socket.timeout !== IDLE_MS) this.#socket.setTimeout(IDLE_MS);
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#waiting = undefined;
    this.#socket.resume();
    this.#take(waiting);
  };

  #handOver(chunk: Buffer): void {
    const socket = this.#socket;
    socket.setTimeout(0);
    socket.removeListener("data", this.#onData);
    socket.removeListener("end", this.#onEnd);
    socket.removeListener("timeout", this.#onTimeout);
    socket.removeListener("drain", this.#onDrain);
    socket.removeListener("error", this.#onEnd);
    socket.removeListener("close", this.#onClose);
    socket.unshift(chunk);
    this.#parse();
  }
}

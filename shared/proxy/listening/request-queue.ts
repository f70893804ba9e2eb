/** Handles requests of one connection one after the other; only a few may wait, because each holds its head. */

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Requests that a client may send ahead; one that sends more is disconnected. */
const MOST_WAITING = 16;

interface Line {
  current: ServerResponse;
  readonly waiting: { readonly response: ServerResponse; readonly begin: () => void }[];
}

export class RequestQueue {
  readonly #lines = new WeakMap<Socket, Line>();

  /** The response that is being written on this connection. */
  current(socket: Socket): ServerResponse | undefined {
    return this.#lines.get(socket)?.current;
  }

  /** Calls `begin` when every earlier request of the connection has been answered; never, when the connection ends. */
  take(socket: Socket, response: ServerResponse, begin: () => void): void {
    if (socket.destroyed) return;
    const line = this.#lines.get(socket);
    if (line === undefined) {
      this.#begin(socket, { current: response, waiting: [] }, begin);
      return;
    }
    line.waiting.push({ response, begin });
    if (line.waiting.length > MOST_WAITING) socket.destroy();
  }

  #begin(socket: Socket, line: Line, begin: () => void): void {
    this.#lines.set(socket, line);
    line.current.once("close", () => {
      const next = line.waiting.shift();
      if (next === undefined || socket.destroyed || socket.writableEnded) {
        this.#lines.delete(socket);
        return;
      }
      line.current = next.response;
      this.#begin(socket, line, next.begin);
    });
    begin();
  }
}

/** Handles requests of one connection one after the other; only a few may wait, because each holds its head. */

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Requests that a client may send ahead; one that sends more is disconnected. */
const MOST_WAITING = 16;

interface Line {
  current: ServerResponse | undefined;
  readonly waiting: Waiting[];
}

interface Waiting {
  readonly response: ServerResponse;
  readonly begin: () => void;
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
    let line = this.#lines.get(socket);
    if (line === undefined) {
      line = { current: undefined, waiting: [] };
      this.#lines.set(socket, line);
    }
    if (line.current === undefined) {
      this.#begin(socket, line, { response, begin });
      return;
    }
    line.waiting.push({ response, begin });
    if (line.waiting.length > MOST_WAITING) socket.destroy();
  }

  #begin(socket: Socket, line: Line, { response, begin }: Waiting): void {
    line.current = response;
    response.on("close", () => {
      line.current = undefined;
      const next = line.waiting.shift();
      if (next === undefined) return;
      if (socket.destroyed || socket.writableEnded) line.waiting.length = 0;
      else this.#begin(socket, line, next);
    });
    begin();
  }
}

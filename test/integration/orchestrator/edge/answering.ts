/** Servers in a sandbox for one test: they send what the test orders, or report the requests that they received. */

import type { Socket } from "node:net";
import { onTestFinished } from "vitest";
import { type Backend, httpBackend, rawBackend } from "./front-door.ts";

/** A server that answers with the request's method, and with the received headers in `x-seen`. */
export async function echoing(address: string): Promise<Backend> {
  const backend = await httpBackend(address, (request, response) => {
    response.setHeader("x-seen", JSON.stringify(request.headers));
    response.end(request.method);
  });
  onTestFinished(() => backend.close());
  return backend;
}

export interface Answering extends Backend {
  /** The requests that `onConnection` recorded. */
  readonly requests: string[];
}

export async function answering(
  address: string,
  onConnection: (socket: Socket, requests: string[]) => void,
): Promise<Answering> {
  const requests: string[] = [];
  const backend = await rawBackend(address, (socket) => onConnection(socket, requests));
  onTestFinished(() => backend.close());
  return { ...backend, requests };
}

/** A server that answers each whole head with the same bytes, and records the heads. */
export function saying(address: string, answer: string): Promise<Answering> {
  return answering(address, (socket, requests) => {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      for (let end = text.indexOf("\r\n\r\n"); end >= 0; end = text.indexOf("\r\n\r\n")) {
        requests.push(text.slice(0, end + 4));
        text = text.slice(end + 4);
        socket.write(answer, "latin1");
      }
    });
  });
}

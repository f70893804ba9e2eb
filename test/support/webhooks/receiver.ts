/** A receiver of webhooks: a real HTTP server on 127.0.0.1, which keeps what it got and answers as the test says. */

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly event: {
    readonly id: string;
    readonly type: string;
    readonly sandboxId: string;
    readonly eventData: Readonly<Record<string, unknown>> | null;
  };
}

export type Reply = (response: ServerResponse, received: Received, request: IncomingMessage) => void;

export interface Receiver {
  readonly url: string;
  readonly port: number;
  readonly got: Received[];
  /** Answers as `reply` does from now on. */
  answer(reply: Reply): void;
  stop(): Promise<void>;
}

export const accept: Reply = (response) => void response.end("ok");

export function status(code: number, headers: Readonly<Record<string, string>> = {}): Reply {
  return (response) => void response.writeHead(code, headers).end();
}

/** Stops with the test, or with `stop` where it serves several. */
export async function startReceiver(first: Reply = accept, { shared = false } = {}): Promise<Receiver> {
  const got: Received[] = [];
  let reply = first;
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const event = JSON.parse(body) as Received["event"];
      const received = { path: request.url ?? "", headers: request.headers, body, event };
      got.push(received);
      reply(response, received, request);
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  };
  if (!shared) onTestFinished(stop);
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    got,
    answer(next) {
      reply = next;
    },
    stop,
  };
}

/** The client's side of an exchange, as much as forwarding needs of it. Types only. */

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

export interface ClientRequest {
  readonly method: string;
  /** The request target as it was sent. */
  readonly url: string;
  /** 0 or 1. */
  readonly httpVersionMinor: number;
  /** Name, value, name, value, … as the parser accepted them. */
  readonly rawHeaders: readonly string[];
  /** Where the body comes from; absent when there can be none. */
  readonly body?: IncomingMessage | undefined;
}

/** What is used of Node's ServerResponse, which satisfies it. */
export interface ClientResponse {
  readonly headersSent: boolean;
  readonly writableEnded: boolean;
  readonly writableFinished: boolean;
  readonly destroyed: boolean;
  shouldKeepAlive: boolean;
  writeContinue(): void;
  writeProcessing(): void;
  writeEarlyHints(hints: Record<string, string>): void;
  /** @throws when a name, value or the reason has a character that cannot be sent. */
  writeHead(status: number, reason: string, headers: string[]): unknown;
  flushHeaders(): void;
  /** False: wait for `drain`. */
  write(chunk: Buffer): boolean;
  addTrailers(trailers: [string, string][]): void;
  end(chunk?: Buffer | string): unknown;
  /** `close`: the client is gone or has everything; `finish`: it has everything. */
  on(event: "close", listener: () => void): unknown;
  once(event: "close" | "finish" | "drain", listener: () => void): unknown;
  removeListener(event: "close" | "finish" | "drain", listener: () => void): unknown;
  destroy(): unknown;
}

/** The client side of a request to upgrade. */
export interface UpgradeRequest {
  readonly protocol: string;
  readonly socket: Duplex;
  /**
   * Lets go of the socket. Returns what the client has sent behind its request: nothing of it may reach the server
   * before the server agrees, or it would be a second request that nobody has looked at.
   */
  takeOver(): Buffer;
}

/** What to do with a request that a parser has accepted. */
export interface Handler {
  /** `upgrade` is there when the client asks for one; `response` then still answers if it is refused. */
  (request: ClientRequest, response: ClientResponse, upgrade?: UpgradeRequest): void;
}

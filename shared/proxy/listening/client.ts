/** The client's side of an exchange, as far as forwarding needs it; that of an ordinary request. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type ProxyAnswer, sendAnswer } from "./answer.ts";

export interface ClientSide {
  readonly request: IncomingMessage;
  /** The connection is lost, or the client has its whole answer. */
  readonly gone: boolean;
  /** Called once, when `gone` becomes true. */
  onGone(listener: () => void): void;
  /**
   * Returns the response to write the server's answer to. A request to upgrade gets a response by this call: it is then
   * answered like any other, and its connection ends.
   */
  answer(write: (response: ServerResponse) => void): void;
  /** Sends an answer of our own, in this call. */
  refuse(answer: ProxyAnswer): void;
  /** The connection for informational responses; undefined once the response has begun. */
  readonly informable: Socket | undefined;
  /** Set when the client asks to switch protocols. */
  readonly upgrade: UpgradeRequest | undefined;
}

/** The client side of a request to upgrade. */
export interface UpgradeRequest {
  readonly protocol: string;
  /** The whole body of the request: Docker's clients send one with theirs. Mostly empty. */
  readonly body: Buffer;
  readonly socket: Socket;
  /**
   * Leaves the socket, paused, to the caller. @returns the bytes that the client sent behind its request: the server must not
   * get them before it agrees to switch, because it would read them as a second request that no check has seen
   */
  takeOver(): Buffer;
}

export type ExchangeHandler = (client: ClientSide) => void;

/** The client of an ordinary request. */
export class PlainClient implements ClientSide {
  readonly request: IncomingMessage;
  readonly upgrade = undefined;
  readonly #response: ServerResponse;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.request = request;
    this.#response = response;
  }

  get informable(): Socket | undefined {
    return this.#response.headersSent ? undefined : (this.#response.socket ?? undefined);
  }

  get gone(): boolean {
    return this.#response.closed || this.#response.destroyed;
  }

  onGone(listener: () => void): void {
    this.#response.on("close", listener);
  }

  answer(write: (response: ServerResponse) => void): void {
    write(this.#response);
  }

  refuse(answer: ProxyAnswer): void {
    sendAnswer(this.request, this.#response, answer);
  }
}

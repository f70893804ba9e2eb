/** The client's side of an exchange, as far as forwarding needs it. Types only. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface ClientSide {
  readonly request: IncomingMessage;
  /** The connection is lost, or the client has its whole answer. */
  readonly gone: boolean;
  /** Called once, when `gone` becomes true. */
  onGone(listener: () => void): void;
  /**
   * Returns the response to write the answer to. A request to upgrade gets a response by this call: it is then answered
   * like any other, and its connection ends.
   */
  answer(write: (response: ServerResponse) => void): void;
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
   * Returns the socket, paused, with the bytes that the client sent behind its request put back: the server must not get
   * them before it agrees to switch, because it would read them as a second request that no check has seen.
   */
  takeOver(): void;
}

export type ExchangeHandler = (client: ClientSide) => void;

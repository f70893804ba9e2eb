/** The client's side of an exchange, as much as forwarding needs of it. Types only. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface Client {
  readonly request: IncomingMessage;
  /** The connection is lost, or the client has its whole answer. */
  readonly gone: boolean;
  /** Called once, when `gone` becomes true. */
  onGone(listener: () => void): void;
  /**
   * Gives the response object to write the answer to. A request to upgrade has none until this is asked for: it is then
   * answered like any other, and its connection ends.
   */
  answer(write: (response: ServerResponse) => void): void;
  /** There when the client asks to switch protocols. */
  readonly upgrade: UpgradeRequest | undefined;
}

/** The client side of a request to upgrade. */
export interface UpgradeRequest {
  readonly protocol: string;
  readonly socket: Socket;
  /**
   * Lets go of the socket, paused, with what the client has sent behind its request put back into it: nothing of that may
   * reach the server before the server agrees, or it would be a second request that no one has looked at.
   */
  takeOver(): void;
}

export type Handler = (client: Client) => void;

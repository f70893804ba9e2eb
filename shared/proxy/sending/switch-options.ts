/** What is asked of those who carry a request to switch protocols. Types only. */

import type { IncomingMessage, InformationEvent } from "node:http";
import type { UpgradeRequest } from "../listening/client.ts";
import type { DialledAgent } from "../sockets/agents.ts";

export interface SwitchOptions {
  readonly request: IncomingMessage;
  readonly upgrade: UpgradeRequest;
  readonly path: string;
  /** Name, value, name, value, …, `Upgrade` among them. */
  readonly headers: string[];
  readonly agent: DialledAgent;
  readonly dialSignal: () => AbortSignal;
  /** As in `OpenCallOptions`. */
  readonly lenient: boolean;
  /** As in `Patience`. */
  readonly stallMs: number;
  readonly keepsBack: (name: string) => boolean;
  /** Called with the answer of a server that does not agree to switch. */
  onAnswer(answer: IncomingMessage): void;
  /** @param stop ends the request with an error */
  onInformation(info: InformationEvent, stop: (error: Error) => void): void;
  /** The client's socket carries what the server says, until `onDone`. */
  onSwitched(): void;
  onDone(): void;
  readonly onError: (error: Error) => void;
}

export interface Switching {
  /** The server may have got the request. */
  readonly reached: boolean;
  /** Ends it in any phase. @param reset the client has reset its connection */
  destroy(reset: boolean): void;
}

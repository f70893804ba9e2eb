/** A client that asks to switch protocols, until a server agrees or an answer is sent. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { sendRaw } from "./answer.ts";
import type { ClientSide, UpgradeRequest } from "./client.ts";

/** Bytes that a client may send behind its request before the answer; more stay in the socket. */
const MAX_EARLY_BYTES = 64 * 1024;
/** Largest body of a request to upgrade; it is read whole, because what follows it is another protocol. */
export const MAX_UPGRADE_BODY_BYTES = 64 * 1024;
/** As long as a head may take. */
const BODY_LIMIT_MS = 60_000;

export interface UpgradingOptions {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** What the server is asked to switch to. */
  readonly protocol: string;
  /** Bytes that came with the head. */
  readonly early: Buffer;
  /** Length of the request's body, `MAX_UPGRADE_BODY_BYTES` at most. */
  readonly bodyBytes: number;
  /**
   * Reads on while the server decides, which detects a client that disconnects; one that ends its side has left. False: a
   * client may end its side at once, and what it sent is still carried.
   */
  readonly watches: boolean;
  /** Called when the body has come; never, when the connection ends before. */
  readonly onWhole: (client: ClientSide) => void;
  /** Returns the connection to the HTTP server, which calls `write` with a response that ends it. */
  readonly answer: (write: (response: ServerResponse) => void) => void;
}

export function openUpgrading(options: UpgradingOptions): void {
  const { request, socket, protocol, early, bodyBytes, watches, onWhole, answer } = options;
  let kept = early.length > 0 ? [early] : [];
  let keptBytes = early.length;
  let body: Buffer | undefined;
  const collect = (chunk: Buffer) => {
    kept.push(chunk);
    keptBytes += chunk.length;
    if (body === undefined) begin();
    if (keptBytes > MAX_EARLY_BYTES && body !== undefined) socket.pause();
  };
  const leave = () => socket.destroy();
  // Reading detects a client that disconnects.
  socket.on("data", collect);
  socket.on("end", leave);
  socket.on("error", leave);
  const letGo = () => {
    socket.pause();
    socket.removeListener("data", collect);
    socket.removeListener("end", leave);
    socket.removeListener("error", leave);
  };
  const bodyTimer = setTimeout(leave, BODY_LIMIT_MS);
  socket.once("close", () => clearTimeout(bodyTimer));
  const begin = () => {
    if (keptBytes < bodyBytes) return;
    clearTimeout(bodyTimer);
    const all = Buffer.concat(kept);
    body = all.subarray(0, bodyBytes);
    kept = all.length > bodyBytes ? [all.subarray(bodyBytes)] : [];
    keptBytes = all.length - bodyBytes;
    if (!watches) letGo();
    onWhole(client);
  };
  const upgrade: UpgradeRequest = {
    protocol,
    socket,
    get body() {
      return body ?? Buffer.alloc(0);
    },
    takeOver() {
      letGo();
      return Buffer.concat(kept);
    },
  };
  const client: ClientSide = {
    request,
    upgrade,
    informable: socket,
    get gone() {
      return socket.destroyed;
    },
    onGone: (listener) => void socket.once("close", listener),
    answer(write) {
      if (socket.destroyed) return;
      // Bytes behind the request belong to a protocol that was not agreed: they are discarded.
      letGo();
      answer(write);
    },
    refuse(given) {
      if (socket.destroyed) return;
      letGo();
      sendRaw(socket, request.method === "HEAD" ? { ...given, body: "" } : given);
    },
  };
  begin();
}

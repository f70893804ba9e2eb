/** A client that asks to switch protocols, until a server agrees or an answer is sent. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { headerValue } from "../raw-headers.ts";
import type { ClientSide, UpgradeRequest } from "./client.ts";

/** Bytes that a client may send behind its request before the answer; more stay in the socket. */
const MAX_EARLY_BYTES = 64 * 1024;

export interface UpgradingOptions {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** Bytes that came with the head. */
  readonly early: Buffer;
  /** Returns the connection to the HTTP server, which calls `write` with a response that ends it. */
  readonly answer: (write: (response: ServerResponse) => void) => void;
}

export function upgradingClient({ request, socket, early, answer }: UpgradingOptions): ClientSide {
  const kept = early.length > 0 ? [early] : [];
  let keptBytes = early.length;
  const collect = (chunk: Buffer) => {
    kept.push(chunk);
    keptBytes += chunk.length;
    if (keptBytes > MAX_EARLY_BYTES) socket.pause();
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
  const upgrade: UpgradeRequest = {
    protocol: headerValue(request.rawHeaders, "upgrade") ?? "",
    socket,
    takeOver() {
      letGo();
      if (kept.length > 0) socket.unshift(Buffer.concat(kept));
    },
  };
  return {
    request,
    upgrade,
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
  };
}

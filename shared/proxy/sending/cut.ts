/** The end of a connection that did not come to its end: the peer is told at once, and half of it never stays open. */

import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/** Resets it where that can be done, else closes it. What has not left yet is lost. */
export function cut(socket: Duplex): void {
  // The system resets no connection whose end has been sent: Node would keep it open.
  const resettable = socket instanceof Socket && !(socket instanceof TLSSocket) && !socket.writableEnded;
  if (resettable && !socket.destroyed) socket.resetAndDestroy();
  else socket.destroy();
}

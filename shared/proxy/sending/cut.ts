/** Aborts a connection mid-stream with RST, so that the peer never waits on a half-open socket. */

import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/** Resets the connection if possible, else closes it. Unsent bytes are lost. */
export function cut(socket: Duplex): void {
  // The system resets no connection whose end has been sent: Node would keep it open.
  const resettable = socket instanceof Socket && !(socket instanceof TLSSocket) && !socket.writableEnded;
  if (resettable && !socket.destroyed) socket.resetAndDestroy();
  else socket.destroy();
}

/** Two sockets as one pipe, after an upgrade: each direction ends on its own, an error or a close ends both. */

import type { Duplex } from "node:stream";
import { cut } from "./cut.ts";

export interface Splice {
  destroy(): void;
}

/** `onDone` is called once, when both sockets are gone. */
export function splice(a: Duplex, b: Duplex, onDone: () => void): Splice {
  let open = 2;
  const destroy = () => {
    cut(a);
    cut(b);
  };
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    from.on("error", destroy);
    from.on("close", () => {
      // A close that follows both ends is the normal course; any other leaves the peer nothing to wait for.
      if (!from.readableEnded || !from.writableFinished) cut(to);
      else if (!to.destroyed) to.end();
      if (--open === 0) onDone();
    });
    from.pipe(to);
  }
  return { destroy };
}

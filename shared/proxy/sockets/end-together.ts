/** How the two connections of a switched protocol end. */

import type { Duplex } from "node:stream";
import { cut } from "./cut.ts";
import { hasFailedWrite } from "./patient.ts";

/**
 * Each direction ends on its own; when one connection breaks, the other one is cut, because an end would look complete. The
 * caller pipes the two.
 * @param onDone called when both have closed
 */
export function endTogether(a: Duplex, b: Duplex, onDone: () => void): void {
  let open = 2;
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    // Runs before the listener of a pipe, which would end the peer as if the stream were complete.
    from.prependListener("error", () => cut(to));
    from.prependListener("end", () => {
      if (hasFailedWrite(from)) cut(to);
    });
    from.prependListener("close", () => {
      if (!from.readableEnded || !from.writableFinished) cut(to);
      if (--open === 0) onDone();
    });
  }
}

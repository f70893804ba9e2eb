/** envd's end of a child's input: reports for every write whether the pipe took all of it. */

import { Socket } from "node:net";

/** Outcome of a write: `taken` by the pipe in full, or `lost`, in part or whole. */
type WriteOutcome = "taken" | "lost";

export interface InputEnd {
  /** Resolves when the pipe has taken all bytes, or when it never will because its last reader or this end closed. */
  write(bytes: Uint8Array): Promise<WriteOutcome>;
  /** End of file for the child, after everything that was written before. May be repeated. */
  end(): void;
  /** Closes it now. Writes that the pipe has not taken in full end as `lost`. */
  destroy(): void;
}

/** @param fd of a pipe's write end, non-blocking; it is closed with the end */
export function inputEnd(fd: number): InputEnd {
  const socket = new Socket({ fd, readable: false, writable: true });
  // Each write reports a closed pipe by its own result.
  socket.on("error", () => undefined);
  return {
    async write(bytes) {
      if (socket.writableEnded || socket.destroyed) return "lost";
      return new Promise<WriteOutcome>((resolve) => {
        const lost = () => resolve("lost");
        const whole = { atOnce: false };
        socket.once("close", lost);
        socket.write(bytes, (error) => {
          socket.off("close", lost);
          // Node reports no error for a write that `destroy` cut short. Such a write succeeded only if the pipe had
          // taken it in full before.
          resolve(error || (socket.destroyed && !whole.atOnce) ? "lost" : "taken");
        });
        whole.atOnce = socket.writableLength === 0;
      });
    },
    // A pipe has no half to shut down: it has to be closed, once everything before is written.
    end: () => void socket.end(() => socket.destroy()),
    destroy: () => void socket.destroy(),
  };
}

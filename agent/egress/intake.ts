/**
 * What comes from the internet is read into a buffer that is used again and again, and a larger one while there is
 * much of it: most bytes of sandboxes come this way, and a new buffer for every read costs half of the throughput.
 */

import type { OnReadOpts, Socket } from "node:net";

const SMALL_BYTES = 64 * 1024;
const LARGE_BYTES = 1024 * 1024;
/** Reads in a row that fill the buffer before it is changed for a large one. */
const FULL_READS = 4;
/** Large buffers in use at a time in the process; who comes later keeps a small one. */
const MOST_LARGE = 64;
const MOST_SPARE = 8;

export interface LargeBuffers {
  take(): Buffer | undefined;
  give(buffer: Buffer): void;
}

export function largeBuffers(): LargeBuffers {
  const spare: Buffer[] = [];
  let used = 0;
  return {
    take() {
      if (used === MOST_LARGE) return undefined;
      used += 1;
      return spare.pop() ?? Buffer.allocUnsafeSlow(LARGE_BYTES);
    },
    give(buffer) {
      used -= 1;
      if (spare.length < MOST_SPARE) spare.push(buffer);
    },
  };
}

export interface Intake {
  /** For the options of the socket that reads. */
  readonly onread: OnReadOpts;
  /** That socket, before its first byte. */
  from(socket: Socket): void;
}

/** Writes everything that is read to `to`, and reads nothing while that has not taken it. */
export function intakeTo(to: Socket, buffers: LargeBuffers): Intake {
  const state = {
    buffer: Buffer.allocUnsafeSlow(SMALL_BYTES) as Buffer,
    large: false,
    full: 0,
    waiting: false,
    closed: false,
  };
  let from: Socket | undefined;

  const grow = () => {
    if (state.large || state.full < FULL_READS || state.closed) return;
    const buffer = buffers.take();
    if (buffer !== undefined) Object.assign(state, { buffer, large: true });
  };
  // Not while `to` still has to write from it: somebody else's bytes would go out instead.
  const release = () => {
    if (!state.closed || state.waiting || !state.large) return;
    state.large = false;
    buffers.give(state.buffer);
  };
  const written = () => {
    if (!state.waiting || (to.writableLength > 0 && !to.destroyed)) return;
    state.waiting = false;
    grow();
    from?.resume();
    release();
  };

  return {
    from(socket) {
      from = socket;
      socket.once("close", () => {
        state.closed = true;
        release();
      });
    },
    onread: {
      buffer: () => state.buffer,
      callback: (length, bytes) => {
        state.full = length === bytes.length ? state.full + 1 : 0;
        to.write(bytes.subarray(0, length), written);
        if (to.writableLength > 0) {
          state.waiting = true;
          return false;
        }
        grow();
        return true;
      },
    },
  };
}

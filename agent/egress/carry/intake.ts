/**
 * Reads connections to the internet into a reused buffer, and a larger one while many bytes come. Most bytes of sandboxes
 * come this way, and a new buffer for every read costs half of the throughput.
 *
 * Until it lends its buffer, the socket is an ordinary stream, whose readers get copies that they may keep.
 */

import type { OnReadOpts, Socket } from "node:net";
import type { Writable } from "node:stream";

const SMALL_BYTES = 64 * 1024;
const LARGE_BYTES = 1024 * 1024;
/** Full reads in a row before the large buffer is used. */
const FULL_READS = 4;
/** Large buffers in use at the same time in the process; further sockets keep a small one. */
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

interface Lending {
  /** Number of bytes to lend; after them the socket is an ordinary stream again. */
  readonly bytes: number;
  /** Called when the last of these bytes has been given to `to`. */
  readonly over?: () => void;
}

export interface Intake {
  /** Belongs into the options of the socket that reads. */
  readonly onread: OnReadOpts;
  /** Sets the socket that is read. Must be called before its first byte. */
  from(socket: Socket): void;
  /**
   * Writes what is read from now on to `to`, straight from the buffer, and reads nothing while `to` has not written it.
   * The caller first writes what was read before.
   */
  lend(to: Writable, lending?: Lending): void;
}

interface Loan extends Lending {
  readonly to: Writable;
  left: number;
}

const intakes = new WeakMap<Socket, Intake>();

/** The intake of a socket that is read this way. */
export function intakeOf(socket: Socket): Intake | undefined {
  return intakes.get(socket);
}

export function openIntake(buffers: LargeBuffers): Intake {
  const small = Buffer.allocUnsafeSlow(SMALL_BYTES);
  let large: Buffer | undefined;
  let loan: Loan | undefined;
  /** Sockets that have not yet written what they were lent. */
  let waitsFor: Writable | undefined;
  let full = 0;
  let closed = false;
  let from: Socket | undefined;

  const settle = () => {
    // The buffer is not returned while a socket still writes from it: that socket would send other bytes.
    if (waitsFor !== undefined) return;
    if (large !== undefined && (closed || loan === undefined)) {
      buffers.give(large);
      large = undefined;
    } else if (loan !== undefined && !closed && full >= FULL_READS) large ??= buffers.take();
  };
  const written = () => {
    if (waitsFor === undefined || (waitsFor.writableLength > 0 && !waitsFor.destroyed)) return;
    waitsFor = undefined;
    settle();
    from?.resume();
  };
  const passOn = (piece: Buffer, current: Loan) => {
    const { to } = current;
    current.left -= piece.length;
    to.write(piece, written);
    if (to.writableLength > 0) waitsFor = to;
    if (current.left > 0) return;
    loan = undefined;
    current.over?.();
  };

  const intake: Intake = {
    from(socket) {
      from = socket;
      intakes.set(socket, intake);
      socket.once("close", () => {
        closed = true;
        settle();
      });
    },
    lend(to, lending = { bytes: Number.POSITIVE_INFINITY }) {
      loan = { to, ...lending, left: lending.bytes };
      from?.resume();
    },
    onread: {
      buffer: () => large ?? small,
      callback: (length, buffer) => {
        // Other code has made the socket read, into the buffer that is still being written.
        if (waitsFor !== undefined) {
          from?.resetAndDestroy();
          return false;
        }
        full = length === buffer.length ? full + 1 : 0;
        const bytes = (buffer as Buffer).subarray(0, length);
        const current = loan;
        if (current === undefined) return from?.push(Buffer.from(bytes)) ?? false;
        const piece = bytes.subarray(0, Math.min(length, current.left));
        passOn(piece, current);
        settle();
        const more = piece.length === length || from?.push(Buffer.from(bytes.subarray(piece.length)));
        return waitsFor === undefined && more !== false;
      },
    },
  };
  return intake;
}

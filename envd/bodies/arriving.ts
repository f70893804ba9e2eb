/** Groups a stream's small pieces, within a bound, so that large bodies cost few turns of the event loop. */

import type { Readable } from "node:stream";
import { AppError } from "../../shared/http/errors.ts";

/** Pieces that arrived together. */
export type Pieces = readonly Buffer[];

/** Size at which a group is returned; the last one may be smaller. */
const HANDFUL_BYTES = 1024 * 1024;
/** Size at which the stream is paused. */
const MOST_WAITING_BYTES = 2 * 1024 * 1024;

/**
 * Leaves the stream open when its reader stops early: the connection still carries the answer.
 * @throws the stream's own error; {AppError} bad_request when the stream is closed before its end
 */
export async function* arriving(stream: Readable): AsyncGenerator<Pieces> {
  let waiting: Buffer[] = [];
  let size = 0;
  let over: { readonly error?: Error } | undefined;
  let wake: () => void = () => undefined;

  const finish = (outcome: { readonly error?: Error }) => {
    over ??= outcome;
    wake();
  };
  const listeners = {
    data: (piece: Buffer) => {
      waiting.push(piece);
      size += piece.length;
      if (size >= MOST_WAITING_BYTES) stream.pause();
      if (size >= HANDFUL_BYTES) wake();
    },
    end: () => finish({}),
    error: (error: Error) => finish({ error }),
    close: () => finish({ error: new AppError("bad_request", "the body ended too early") }),
  };
  for (const [event, listener] of Object.entries(listeners)) stream.on(event, listener);
  // The stream may have failed before this listener was added.
  if (stream.destroyed && !stream.readableEnded) listeners.close();
  try {
    for (;;) {
      if (size < HANDFUL_BYTES && over === undefined) {
        stream.resume();
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      const pieces = waiting;
      waiting = [];
      size = 0;
      if (pieces.length > 0) {
        stream.resume();
        yield pieces;
      } else if (over?.error !== undefined) throw over.error;
      else return;
    }
  } finally {
    for (const [event, listener] of Object.entries(listeners)) stream.off(event, listener);
  }
}

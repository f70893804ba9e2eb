/** Follows Connect's stream framing as bytes pass: finds where envelopes end, and makes the frame that ends a stream. Pure. */

const HEADER_BYTES = 5;
const END_STREAM = 0x02;

export interface StreamError {
  /** A Connect code name, e.g. `unavailable`. */
  readonly code: string;
  readonly message: string;
}

/** The last frame of a stream that was cut for no known reason. */
export const CONNECTION_LOST: StreamError = {
  code: "unavailable",
  message: "The connection to the sandbox was lost while the request was in flight.",
};

/** True for bodies made of Connect envelopes. */
export function isConnectStream(contentType: string | undefined): boolean {
  return contentType !== undefined && /^\s*application\/connect\+/i.test(contentType);
}

/** Follows a stream without storing any of it. */
export class EnvelopeTracker {
  #headerSeen = 0;
  #flags = 0;
  #length = 0;
  #left = 0;
  #ended = false;

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#left > 0) {
        const step = Math.min(this.#left, chunk.length - at);
        this.#left -= step;
        at += step;
        if (this.#left === 0) this.#close();
        continue;
      }
      const byte = chunk[at++] ?? 0;
      if (this.#headerSeen === 0) {
        this.#flags = byte;
        this.#length = 0;
      } else {
        this.#length = this.#length * 256 + byte;
      }
      if (++this.#headerSeen === HEADER_BYTES) {
        this.#left = this.#length;
        if (this.#left === 0) this.#close();
      }
    }
  }

  /** A frame may be appended here: no envelope is incomplete, and the stream has not ended itself. */
  get mayAppend(): boolean {
    return this.#headerSeen === 0 && !this.#ended;
  }

  #close(): void {
    this.#headerSeen = 0;
    if ((this.#flags & END_STREAM) !== 0) this.#ended = true;
  }
}

/** The EndStream envelope that reports `error`. */
export function errorFrame(error: StreamError): Buffer {
  const payload = Buffer.from(JSON.stringify({ error }));
  const frame = Buffer.alloc(HEADER_BYTES + payload.length);
  frame.writeUInt8(END_STREAM, 0);
  frame.writeUInt32BE(payload.length, 1);
  payload.copy(frame, HEADER_BYTES);
  return frame;
}

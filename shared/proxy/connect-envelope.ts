/** Follows the stream framing of Connect and gRPC-Web as bytes pass: finds where envelopes end, makes the frame that ends a stream. Pure. */

const HEADER_BYTES = 5;

/** Both protocols frame alike; the last frame differs. */
export type StreamForm = "connect" | "grpc-web";

/** The flag of a stream's last frame. */
const END_STREAM: Readonly<Record<StreamForm, number>> = { connect: 0x02, "grpc-web": 0x80 };

/** Connect's names of the status codes, by gRPC's number. */
const CODES = [
  "ok",
  "canceled",
  "unknown",
  "invalid_argument",
  "deadline_exceeded",
  "not_found",
  "already_exists",
  "permission_denied",
  "resource_exhausted",
  "failed_precondition",
  "aborted",
  "out_of_range",
  "unimplemented",
  "internal",
  "unavailable",
  "data_loss",
  "unauthenticated",
];

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

/** The framing of a body, where a frame can be appended to it; the text form of gRPC-Web is not followed. */
export function streamFormOf(contentType: string | undefined): StreamForm | undefined {
  if (isConnectStream(contentType)) return "connect";
  return /^\s*application\/grpc-web(?![\w-])/i.test(contentType ?? "") ? "grpc-web" : undefined;
}

/** Follows a stream without storing any of it. */
export class EnvelopeTracker {
  readonly form: StreamForm;
  #headerSeen = 0;
  #flags = 0;
  #length = 0;
  #left = 0;
  #ended = false;

  constructor(form: StreamForm = "connect") {
    this.form = form;
  }

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
    if ((this.#flags & END_STREAM[this.form]) !== 0) this.#ended = true;
  }
}

/** The last envelope of a stream, which reports `error`. */
export function errorFrame(error: StreamError, form: StreamForm = "connect"): Buffer {
  const payload = Buffer.from(form === "connect" ? JSON.stringify({ error }) : trailers(error));
  const frame = Buffer.alloc(HEADER_BYTES + payload.length);
  frame.writeUInt8(END_STREAM[form], 0);
  frame.writeUInt32BE(payload.length, 1);
  payload.copy(frame, HEADER_BYTES);
  return frame;
}

function trailers({ code, message }: StreamError): string {
  const known = CODES.indexOf(code);
  return `grpc-status: ${known > 0 ? known : CODES.indexOf("unknown")}\r\ngrpc-message: ${encodeURIComponent(message)}\r\n`;
}

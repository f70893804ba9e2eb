/** Frames between envd and svc-exec: builds requests, splits the answer stream, reads answers. Pure; see exec/svc-exec.h. */

/** Request kinds of svc-exec. */
export const Request = {
  spawn: 1,
  release: 2,
  signal: 3,
  resize: 4,
  watch: 5,
  unwatch: 6,
  sync: 7,
  unwatchAll: 8,
  getAttributes: 9,
  setAttributes: 10,
} as const;

/** Answer kinds of svc-exec. */
export const Answer = { reply: 100, exit: 101, notify: 102 } as const;

/** svc-exec refuses a larger frame. */
export const LARGEST_FRAME_BYTES = 16 * 1024 * 1024;

const HEADER_BYTES = 9;

/** Bytes are sent like a string that they are the UTF-8 of. */
export type Field = number | string | Uint8Array | readonly (string | Uint8Array)[] | readonly number[];

/** One request. Numbers are 32 bits; a string is length, UTF-8, NUL; a list is its count, then its members. */
export function encodeFrame(kind: number, id: number, fields: readonly Field[]): Buffer {
  let size = HEADER_BYTES;
  for (const field of fields) size += sizeOf(field);
  const frame = Buffer.allocUnsafe(size);
  frame.writeUInt32LE(size - 4, 0);
  frame.writeUInt8(kind, 4);
  frame.writeUInt32LE(id, 5);
  let at = HEADER_BYTES;
  for (const field of fields) at = put(frame, at, field);
  return frame;
}

function sizeOf(field: Field): number {
  if (typeof field === "number") return 4;
  if (typeof field === "string") return 5 + Buffer.byteLength(field);
  if (field instanceof Uint8Array) return 5 + field.length;
  let size = 4;
  for (const member of field) size += sizeOf(member);
  return size;
}

function put(frame: Buffer, at: number, field: Field): number {
  if (typeof field === "number") {
    frame.writeInt32LE(field | 0, at);
    return at + 4;
  }
  if (typeof field === "string") {
    const written = frame.write(field, at + 4);
    frame.writeUInt32LE(written, at);
    frame[at + 4 + written] = 0;
    return at + 5 + written;
  }
  if (field instanceof Uint8Array) {
    frame.writeUInt32LE(field.length, at);
    frame.set(field, at + 4);
    frame[at + 4 + field.length] = 0;
    return at + 5 + field.length;
  }
  frame.writeUInt32LE(field.length, at);
  let next = at + 4;
  for (const member of field) next = put(frame, next, member);
  return next;
}

export interface AnswerFrame {
  readonly kind: number;
  readonly id: number;
  readonly body: AnswerReader;
}

/** Reads one answer front to back. svc-exec is ours: a body that is too short is a bug and throws a RangeError. */
export class AnswerReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  byte(): number {
    const value = this.#bytes.readUInt8(this.#at);
    this.#at += 1;
    return value;
  }

  int(): number {
    const value = this.#bytes.readInt32LE(this.#at);
    this.#at += 4;
    return value;
  }

  text(): string {
    return this.bytes().toString("utf8");
  }

  /** A view: valid as long as the frame. */
  bytes(): Buffer {
    const length = this.int();
    const value = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return value;
  }
}

/** Cuts a byte stream into answers. Keeps at most one incomplete frame. */
export class AnswerSplitter {
  #rest: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): AnswerFrame[] {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: AnswerFrame[] = [];
    while (bytes.length >= 4) {
      const end = 4 + bytes.readUInt32LE(0);
      if (bytes.length < end) break;
      frames.push({
        kind: bytes.readUInt8(4),
        id: bytes.readUInt32LE(5),
        body: new AnswerReader(bytes.subarray(HEADER_BYTES, end)),
      });
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
    return frames;
  }
}

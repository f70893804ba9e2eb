/** The frames between the agent and `svc-commands`, whose source describes them. Pure. */

import { endianness } from "node:os";

export const KIND = { start: 1, kill: 2, printed: 3, complained: 4, ended: 5, refused: 6 } as const;

interface Frame {
  readonly number: number;
  readonly kind: number;
  readonly rest: Buffer;
}

const HEAD = 12;
/** What the length does not count: the length itself. */
const LENGTH = 4;

const LITTLE = endianness() === "LE";

function numbers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [at, value] of values.entries())
    if (LITTLE) bytes.writeUInt32LE(value, 4 * at);
    else bytes.writeUInt32BE(value, 4 * at);
  return bytes;
}

export function readNumber(bytes: Buffer, at = 0): number {
  return LITTLE ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at);
}

export function frame(number: number, kind: number, ...rest: readonly Uint8Array[]): Buffer {
  const length = rest.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([numbers(HEAD - LENGTH + length, number, kind), ...rest]);
}

interface StartText {
  readonly words: readonly string[];
  readonly path: string | undefined;
  readonly input: string | Uint8Array;
}

/** @throws {Error} a word with a zero in it can be passed to no program */
export function startFrame(number: number, { words, path = "", input }: StartText): Buffer {
  const strings = [path, ...words];
  if (strings.some((one) => one.includes("\0"))) throw new Error("a word of a command has a zero in it");
  const text = strings.map((one) => `${one}\0`).join("");
  return frame(number, KIND.start, numbers(words.length), Buffer.from(text), Buffer.from(input));
}

/** Gives what comes in pieces on as whole frames. */
export function readFrames(onFrame: (one: Frame) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= HEAD) {
      const end = LENGTH + readNumber(rest);
      if (rest.length < end) return;
      onFrame({ number: readNumber(rest, 4), kind: readNumber(rest, 8), rest: rest.subarray(HEAD, end) });
      rest = rest.subarray(end);
    }
  };
}

/** Makes new inputs out of good ones: an attacker's input is mostly nearly right. */

import type { Random } from "./random.ts";

/** Bytes that parsers treat specially. */
const BYTES = [0, 1, 9, 10, 13, 32, 34, 37, 44, 46, 47, 58, 59, 61, 63, 64, 92, 127, 128, 192, 255];
const NUMBERS = ["0", "-1", "1", "65535", "65536", "4294967296", "9007199254740993", "1e3", "0x10", "007", "٣"];
const MOST_CHANGES = 6;

interface Material {
  readonly seeds: readonly Buffer[];
  /** Words of the input's language. */
  readonly words: readonly string[];
  readonly longest: number;
}

type Change = (input: Buffer, random: Random, material: Material) => Buffer;

/**
 * Makes one to six changes to one of the seeds; now and then joins the beginning of one seed and the end of another, or
 * makes noise.
 */
export function mutate(material: Material, random: Random): Buffer {
  const { seeds, longest } = material;
  if (random.below(100) === 0) return random.bytes(random.below(64));
  let input = random.pick(seeds);
  if (random.below(8) === 0) input = crossed(input, random.pick(seeds), random);
  for (let left = 1 + random.below(MOST_CHANGES); left > 0; left -= 1)
    input = random.pick(CHANGES)(input, random, material);
  return input.length > longest ? input.subarray(0, longest) : input;
}

const CHANGES: readonly Change[] = [
  // Flips a bit.
  (input, random) => {
    if (input.length === 0) return input;
    const changed = Buffer.from(input);
    const at = random.below(input.length);
    changed[at] = (changed[at] ?? 0) ^ (1 << random.below(8));
    return changed;
  },
  // Replaces a byte.
  (input, random) => replaced(input, random.below(input.length + 1), 1, Buffer.from([byte(random)])),
  // Inserts bytes.
  (input, random) => {
    const piece = random.below(4) === 0 ? Buffer.alloc(random.below(300), byte(random)) : random.bytes(random.below(9));
    return replaced(input, random.below(input.length + 1), 0, piece);
  },
  // Inserts a word, or writes it over other bytes.
  (input, random, { words }) => {
    if (words.length === 0) return input;
    const word = Buffer.from(random.pick(words), "latin1");
    return replaced(input, random.below(input.length + 1), random.below(2) * word.length, word);
  },
  // Removes a piece.
  (input, random) => replaced(input, random.below(input.length + 1), random.below(20), Buffer.alloc(0)),
  // Repeats a piece, in its place or elsewhere.
  (input, random) => {
    const from = random.below(input.length + 1);
    const piece = input.subarray(from, from + 1 + random.below(40));
    return replaced(input, random.below(2) === 0 ? from : random.below(input.length + 1), 0, piece);
  },
  // Cuts the input short.
  (input, random) => input.subarray(0, random.below(input.length + 1)),
  // Replaces a number by another one.
  (input, random) => {
    const text = input.toString("latin1");
    const found = [...text.matchAll(/\d+/g)];
    if (found.length === 0) return input;
    const one = random.pick(found);
    return replaced(input, one.index, one[0].length, Buffer.from(random.pick(NUMBERS)));
  },
  // Changes the case of a letter.
  (input, random) => {
    const at = random.below(input.length + 1);
    const piece = input.toString("latin1", at, at + 8);
    const other = piece === piece.toLowerCase() ? piece.toUpperCase() : piece.toLowerCase();
    return replaced(input, at, 8, Buffer.from(other.slice(0, piece.length), "latin1"));
  },
];

function byte(random: Random): number {
  return random.below(2) === 0 ? random.below(256) : random.pick(BYTES);
}

function crossed(one: Buffer, other: Buffer, random: Random): Buffer {
  return Buffer.concat([one.subarray(0, random.below(one.length + 1)), other.subarray(random.below(other.length + 1))]);
}

/** Replaces `length` bytes at `at`. */
function replaced(input: Buffer, at: number, length: number, by: Buffer): Buffer {
  return Buffer.concat([input.subarray(0, at), by, input.subarray(at + length)]);
}

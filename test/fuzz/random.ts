/** Reproducible random numbers: a seed and the number of an input give the same input on every machine. */

export interface Random {
  /** Returns a whole number from 0 to `below` - 1. */
  below(below: number): number;
  pick<T>(items: readonly T[]): T;
  bytes(length: number): Buffer;
}

/** The mulberry32 generator: fast, and good enough to choose mutations. */
export function createRandom(seed: number, index: number): Random {
  let state = (Math.imul(seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b)) | 0;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const below = (limit: number) => Math.floor((next() / 2 ** 32) * limit);
  return {
    below,
    pick<T>(items: readonly T[]): T {
      if (items.length === 0) throw new RangeError("nothing to pick from");
      return items[below(items.length)] as T;
    },
    bytes(length) {
      const bytes = Buffer.alloc(length);
      for (let at = 0; at < length; at += 1) bytes[at] = below(256);
      return bytes;
    },
  };
}

/**
 * Random numbers of a process whose memory may be copied: `Math.random`, and all that draws from OpenSSL. Programs keep
 * functions like `crypto.randomUUID` in variables, so their sources are seeded again instead of replacing the functions.
 */

import { randomInt, randomUUID } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";

const STATE_WORDS = 4;
/** Node draws so many UUIDs, and so many numbers of `randomInt`, at once, and hands them out one at a time. */
const UUIDS_AHEAD = 128;
const NUMBERS_AHEAD = 1_024;

/**
 * Replaces `Math.random`, because V8's generator cannot be seeded.
 * @param folder the folder of this program, with `reseed.node`
 * @returns seeds every generator again. It throws where Node has no OpenSSL
 */
export function randomNumbers(folder: string): () => void {
  const state = new Uint32Array(STATE_WORDS);
  fill(state);
  const random = () => fraction(state);
  Object.defineProperty(Math, "random", { value: random, writable: true, configurable: true, enumerable: false });
  const reseedOpenSsl = load(join(folder, "reseed.node")) as () => boolean;
  return () => {
    fill(state);
    if (!reseedOpenSsl()) throw new Error("the generator of node:crypto cannot be seeded: this Node has no OpenSSL");
    for (let n = 0; n < UUIDS_AHEAD; n += 1) randomUUID();
    for (let n = 0; n < NUMBERS_AHEAD; n += 1) randomInt(2);
  };
}

function load(path: string): unknown {
  const module = { exports: {} as unknown };
  process.dlopen(module, path);
  return module.exports;
}

/** From the kernel, which copies share with no one. */
function fill(state: Uint32Array): void {
  const source = openSync("/dev/urandom", "r");
  try {
    readSync(source, state);
  } finally {
    closeSync(source);
  }
}

/** xoshiro128**, by Blackman and Vigna, public domain: two words for the 53 bits of a fraction. */
function fraction(state: Uint32Array): number {
  const high = next(state) >>> 5;
  return (high * 2 ** 26 + (next(state) >>> 6)) / 2 ** 53;
}

function next(state: Uint32Array): number {
  const [a = 0, b = 0, c = 0, d = 0] = state;
  const mixed = Math.imul(b, 5);
  const word = Math.imul((mixed << 7) | (mixed >>> 25), 9) >>> 0;
  const e = c ^ a;
  const f = d ^ b;
  state[0] = a ^ f;
  state[1] = b ^ e;
  state[2] = e ^ (b << 9);
  state[3] = (f << 11) | (f >>> 21);
  return word;
}

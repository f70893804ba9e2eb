/**
 * The form of packed samples: a version, and for each sample the number of steps since the one before and its values, in
 * numbers of 7 bits a byte. What is in use changes little from one sample to the next, so its change is stored. Pure.
 */

import type { StoredSample } from "./row.ts";
import { slotOf } from "./steps.ts";

const VERSION = 1;
/** The most bytes of a sample: eight numbers below 2^53. */
const LONGEST = 8 * 8;

/** Below it, operators of integers work, which are much faster than a division. */
const INTEGERS = 2 ** 31;

interface Block {
  /** Beginning, Unix seconds. */
  readonly at: number;
  readonly step: number;
}

/** @param samples oldest first, at most one for each step, none before the block begins */
export function pack(samples: readonly StoredSample[], block: Block): Uint8Array {
  const bytes = Buffer.alloc(1 + samples.length * LONGEST);
  bytes[0] = VERSION;
  let length = 1;
  const put = (value: number) => {
    let rest = value;
    for (; rest >= INTEGERS; rest = Math.floor(rest / 0x80)) bytes[length++] = (rest % 0x80) | 0x80;
    for (; rest > 0x7f; rest >>= 7) bytes[length++] = (rest & 0x7f) | 0x80;
    bytes[length++] = rest;
  };
  // An even number is a change upwards.
  const putChange = (change: number) => put(change < 0 ? -2 * change - 1 : 2 * change);
  let before = { at: block.at, memory_bytes: 0, disk_bytes: 0 };
  for (const sample of samples) {
    put((sample.at - before.at) / block.step);
    put(sample.sandboxes);
    put(sample.starts);
    put(sample.cpu_ms);
    putChange(sample.memory_bytes - before.memory_bytes);
    putChange(sample.disk_bytes - before.disk_bytes);
    put(sample.sent_bytes);
    put(sample.received_bytes);
    before = sample;
  }
  return bytes.subarray(0, length);
}

/** Oldest first. */
export function unpack(bytes: Uint8Array, block: Block): StoredSample[] {
  if (bytes[0] !== VERSION) throw new Error(`packed samples have the unknown version ${bytes[0]}`);
  let place = 1;
  const take = () => {
    let value = 0;
    for (let unit = 1; ; unit *= 0x80) {
      const byte = bytes[place++];
      if (byte === undefined) throw new Error("packed samples end within a number");
      value += (byte & 0x7f) * unit;
      if (byte <= 0x7f) return value;
    }
  };
  const takeChange = () => {
    const change = take();
    return change % 2 === 0 ? change / 2 : -(change + 1) / 2;
  };
  const samples: StoredSample[] = [];
  let before = { at: block.at, memory_bytes: 0, disk_bytes: 0 };
  while (place < bytes.length) {
    const sample = {
      at: before.at + take() * block.step,
      sandboxes: take(),
      starts: take(),
      cpu_ms: take(),
      memory_bytes: before.memory_bytes + takeChange(),
      disk_bytes: before.disk_bytes + takeChange(),
      sent_bytes: take(),
      received_bytes: take(),
    };
    samples.push(sample);
    before = sample;
  }
  return samples;
}

/** By the beginning of the block that they are in. */
export function byBlock(samples: readonly StoredSample[], length: number): Map<number, StoredSample[]> {
  const blocks = new Map<number, StoredSample[]>();
  for (const sample of samples) {
    const at = slotOf(sample.at, length);
    const others = blocks.get(at);
    if (others === undefined) blocks.set(at, [sample]);
    else others.push(sample);
  }
  return blocks;
}

/** Oldest first; samples of the same step become one. */
export function merged(samples: readonly StoredSample[]): StoredSample[] {
  const byTime = new Map<number, StoredSample>();
  for (const sample of samples) {
    const known = byTime.get(sample.at);
    byTime.set(sample.at, known === undefined ? sample : sum(known, sample));
  }
  return [...byTime.values()].sort((one, other) => one.at - other.at);
}

function sum(one: StoredSample, other: StoredSample): StoredSample {
  return {
    at: one.at,
    sandboxes: Math.max(one.sandboxes, other.sandboxes),
    starts: one.starts + other.starts,
    cpu_ms: one.cpu_ms + other.cpu_ms,
    memory_bytes: Math.max(one.memory_bytes, other.memory_bytes),
    disk_bytes: Math.max(one.disk_bytes, other.disk_bytes),
    sent_bytes: one.sent_bytes + other.sent_bytes,
    received_bytes: one.received_bytes + other.received_bytes,
  };
}

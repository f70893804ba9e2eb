/** How many descriptors this process may have, and what of them a server may use for connections. */

import { readFileSync } from "node:fs";
import type { Room } from "../http/connection-limits.ts";

/** Where the kernel does not say. */
const ASSUMED = 1_024;
/** More connections than this a single thread serves badly; each costs about 20 kB. */
const MOST = 16_384;
const LEAST = 16;

/** The soft limit in force; Node raises it to the hard one at its start. */
export function descriptorLimit(read = () => readFileSync("/proc/self/limits", "utf8")): number {
  try {
    const soft = /^Max open files\s+(\d+|unlimited)/m.exec(read())?.[1];
    if (soft === "unlimited") return Number.MAX_SAFE_INTEGER;
    return soft === undefined ? ASSUMED : Number(soft);
  } catch {
    return ASSUMED;
  }
}

/**
 * Room for a server that may use `share` (of 1) of the descriptors. An eighth is kept for the platform itself, a quarter is
 * the most that one address gets. A `wanted` number other than 0 is an operator's and counts instead.
 */
export function roomFor(
  share: number,
  wanted: { readonly total: number; readonly perAddress: number },
  limit = descriptorLimit(),
): Room {
  const total = wanted.total === 0 ? Math.min(MOST, Math.max(LEAST, Math.floor(limit * share))) : wanted.total;
  const perAddress = wanted.perAddress === 0 ? Math.max(1, Math.floor(total / 4)) : wanted.perAddress;
  return { total, reserved: Math.max(1, Math.floor(total / 8)), perAddress };
}

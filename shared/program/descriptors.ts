/** The process's limit of descriptors, and the share of it that a server may use for connections. */

import { readFileSync } from "node:fs";
import type { Log } from "./log.ts";

/** How many connections a server may have. */
export interface Room {
  /** Connections at the same time. */
  readonly total: number;
  /** Part of `total` that is reserved for the platform's own programs and operators. */
  readonly reserved: number;
  /** Most connections of one address (`clientOf` of shared/http). */
  readonly perAddress: number;
}

/** Used where the kernel does not report a limit. */
const ASSUMED = 1_024;
/** Most connections that one thread serves well; each costs about 20 kB. */
const MOST = 16_384;
const LEAST = 16;
/** With fewer descriptors one client of the edge gets less than 384 connections, and a few hundred sandboxes are many. */
const ENOUGH = 4_096;

/** The soft limit in force; Node raises it to the hard limit when it starts. */
export function descriptorLimit(read = () => readFileSync("/proc/self/limits", "utf8")): number {
  try {
    const soft = /^Max open files\s+(\d+|unlimited)/m.exec(read())?.[1];
    if (soft === "unlimited") return Number.MAX_SAFE_INTEGER;
    return soft === undefined ? ASSUMED : Number(soft);
  } catch {
    return ASSUMED;
  }
}

/** Warns at a program's start that its limit of open files is low, which makes its limits of connections small. */
export function warnOfFewDescriptors(log: Log, limit = descriptorLimit()): void {
  if (limit >= ENOUGH) return;
  log.warn(
    { limit, enough: ENOUGH },
    "limit of open files is low, so few connections are served at a time: raise it (LimitNOFILE= of the service, or " +
      "`ulimit -Hn` of who runs up) and start this program again",
  );
}

/**
 * Limits for a server that may use `share` (of 1) of the descriptors. An eighth is reserved for the platform itself; one
 * address gets at most a quarter. A `wanted` number other than 0 comes from an operator and replaces the derived one.
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

/** Waits for a database server that cannot be reached yet, as after a boot of both machines. */

import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseError } from "pg";
import type { Log } from "../../../shared/program/log.ts";

/**
 * Each start of the program takes so long while the server is away: systemd gives up a program that ends ten times in a minute, and this
 * one ends less often than that. A wrong address is said after this time.
 */
export const LIMIT_MS = 10_000;
const BETWEEN_MS = 500;

/** Of a dial, or of a connection that ended before the server had answered. */
const UNREACHED = /^(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENETDOWN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT)$/;
/** The server is starting up, shutting down, or recovering. */
const NOT_YET = /^57P0[123]$/;

export interface Waiting {
  readonly log: Pick<Log, "warn">;
  readonly limitMs?: number;
  readonly betweenMs?: number;
}

/** Repeats `open` while no server answers, until the limit. @throws what `open` threw last, and at once what another try does not change */
export async function whenReached<Opened>(open: () => Promise<Opened>, waiting: Waiting): Promise<Opened> {
  const { log, limitMs = LIMIT_MS, betweenMs = BETWEEN_MS } = waiting;
  const begun = performance.now();
  for (let tries = 1; ; tries++) {
    try {
      return await open();
    } catch (error) {
      if (!isNotReached(error) || performance.now() - begun > limitMs) throw error;
      if (tries === 1) log.warn({ err: error, limitMs }, "the database cannot be reached yet: waiting for it");
      await sleep(betweenMs);
    }
  }
}

function isNotReached(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code = "", syscall } = error as NodeJS.ErrnoException;
  if (error instanceof DatabaseError) return NOT_YET.test(code);
  // The socket of a server on this machine is not there before its start.
  return UNREACHED.test(code) || (code === "ENOENT" && syscall === "connect");
}

/**
 * Divides connections and DNS questions of the egress process between sandboxes. A sandbox with few of them gets another
 * while any is free; one with many gets another only from the part that is not reserved for the others.
 */

import type { Log } from "../../../shared/program/log.ts";

export interface SharedRoom {
  /** Most permits that all sandboxes together may hold. */
  readonly total: number;
  /** Most permits that one sandbox may hold. */
  readonly most: number;
  /** A sandbox that holds fewer permits than this always gets another one while the total has one. */
  readonly few: number;
  /** Part of the total that is reserved for sandboxes with fewer than `few`. */
  readonly reserved: number;
}

export interface Shares {
  /** False when no permit is free for `who`. After true the caller must call `leave`. */
  enter(who: string): boolean;
  leave(who: string): void;
}

/** Most connections that one thread serves well; each may take 64 KiB. */
const MOST_CONNECTIONS = 16_384;
const MOST_QUESTIONS = 1_024;
const COMPLAIN_EVERY_MS = 10_000;

/** Divides `limit` descriptors. A connection takes two and for a moment a third; a question one, over TCP two. */
export function roomOfEgress(limit: number, connectionsPerSandbox: number) {
  const connections = Math.max(16, Math.min(MOST_CONNECTIONS, Math.floor(limit / 3)));
  const questions = Math.max(16, Math.min(MOST_QUESTIONS, Math.floor(limit / 16)));
  const quarter = (total: number) => Math.floor(total / 4);
  return {
    connections: { total: connections, most: connectionsPerSandbox, few: 32, reserved: quarter(connections) },
    questions: { total: questions, most: 64, few: 8, reserved: quarter(questions) },
    dnsConnections: { total: questions, most: 8, few: 2, reserved: quarter(questions) },
  } as const satisfies Record<string, SharedRoom>;
}

/** `what` names the resource in the log when all of it is in use. */
export function openShares({ total, most, few, reserved }: SharedRoom, what: string, log: Log): Shares {
  const counts = new Map<string, number>();
  const state = { used: 0, refused: 0, saidAt: 0 };

  const complain = (who: string, own: number) => {
    state.refused += 1;
    const now = Date.now();
    if (now - state.saidAt < COMPLAIN_EVERY_MS) return;
    log.warn(
      { what, address: who, own, used: state.used, total, refused: state.refused },
      "refused a sandbox's request, because a shared resource of the egress process is short",
    );
    state.refused = 0;
    state.saidAt = now;
  };

  return {
    enter(who) {
      const own = counts.get(who) ?? 0;
      if (own >= most) return false;
      // A sandbox never gets more than it leaves for the others: a single one gets half, the next ones less and less.
      const free = own < few ? state.used < total : own < total - reserved - state.used;
      if (!free) {
        complain(who, own);
        return false;
      }
      state.used += 1;
      counts.set(who, own + 1);
      return true;
    },
    leave(who) {
      state.used -= 1;
      const own = (counts.get(who) ?? 1) - 1;
      if (own === 0) counts.delete(who);
      else counts.set(who, own);
    },
  };
}

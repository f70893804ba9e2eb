/**
 * When the platform's authority changes: at first both are trusted and the former one signs, then the new one signs, and at last
 * the former one is dropped. Each step waits until no machine needs what it takes away. Pure.
 */

import type { MachineTrust } from "../store/machines/authorities.ts";

const HOUR_MS = 3_600_000;
/** A certificate has ended after that time, so a machine that was silent for so long has to join again in any case. */
export const ENDED_MS = 73 * HOUR_MS;

export interface Replacement {
  /** Digests. */
  readonly former: string;
  readonly next: string;
  /** Since when both are trusted, and since when the new one signs; unix milliseconds. */
  readonly begunAt: number;
  readonly signsSince: number | undefined;
}

export interface Machine extends MachineTrust {
  /** The last report of a node; undefined: an edge, or no report. */
  readonly heardAt: number | undefined;
}

interface Waiting {
  readonly kind: "node" | "edge" | "orchestrators";
  readonly id: string;
  readonly reason: string;
}

export interface PlanTimes {
  readonly now: number;
  /** Within this time every orchestrator has read what another one has changed. */
  readonly graceMs: number;
}

export interface Step {
  /** What can be done now; undefined: something is waited for. */
  readonly do: "sign" | "drop" | undefined;
  readonly waits: readonly Waiting[];
}

export function nextStep(replacement: Replacement, machines: readonly Machine[], times: PlanTimes): Step {
  const { signsSince, begunAt } = replacement;
  const since = signsSince ?? begunAt;
  const waits = machines
    .filter((machine) => !hasEnded(machine, times.now))
    .flatMap((machine) => {
      const reason = reasonOf(machine, replacement);
      return reason === undefined ? [] : [{ kind: machine.kind, id: machine.id, reason }];
    });
  if (waits.length > 0) return { do: undefined, waits };
  const leftMs = since + times.graceMs - times.now;
  if (leftMs > 0) {
    const reason = `read the change from the database: ${Math.ceil(leftMs / 1_000)} s left`;
    return { do: undefined, waits: [{ kind: "orchestrators", id: "", reason }] };
  }
  return { do: signsSince === undefined ? "sign" : "drop", waits: [] };
}

/** Machines that cannot follow a replacement. */
export function unableMachines(machines: readonly Machine[], now: number): Machine[] {
  return machines.filter((machine) => machine.askedAt === undefined && !hasEnded(machine, now));
}

/** An edge of an earlier version says nothing, and may run all the same. */
function hasEnded({ kind, askedAt, heardAt, joinedAt }: Machine, now: number): boolean {
  if (kind === "edge" && askedAt === undefined) return false;
  return now - Math.max(askedAt ?? 0, heardAt ?? 0, joinedAt) > ENDED_MS;
}

function reasonOf({ trusted, issuer, askedAt }: Machine, { next, signsSince }: Replacement): string | undefined {
  if (askedAt === undefined)
    return "has not said which authorities it trusts: its program is of an earlier version, or does not run";
  if (!trusted.includes(next)) return "does not trust the new authority yet";
  if (signsSince !== undefined && issuer !== next) return "has a certificate of the former authority";
  return undefined;
}

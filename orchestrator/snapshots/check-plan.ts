/** What the copies of a snapshot say together: whether it is whole, and where a good copy of each damaged part is. Pure. */

import type { CheckedPart, SnapshotCheck } from "../../shared/agent-api/snapshot-check-shapes.ts";
import type { CheckedCopy, SnapshotVerification } from "../../shared/api/stored/snapshot-checks.ts";

type Outcome = Pick<SnapshotVerification, "verdict" | "good">;

/** The worst first. */
const WORST = ["damaged", "missing", "unread"] as const;

/** The state of a copy that its node has read, or is reading. */
export function copyState({ state, parts }: SnapshotCheck): CheckedCopy["state"] {
  if (state === "absent") return "missing";
  if (state !== "ended") return state;
  return WORST.find((each) => parts.some((part) => part.state === each)) ?? "whole";
}

export function outcomeOf(copies: readonly CheckedCopy[]): Outcome {
  if (copies.some(({ state }) => state === "waiting" || state === "running")) return { verdict: null, good: [] };
  const faulty = partsThat(copies, isFaulty);
  // A copy that is gone has no parts: all that another one has is missing there.
  const gone = copies.some(({ state, parts }) => state === "missing" && parts.length === 0);
  const concerned = gone ? new Set([...faulty, ...partsThat(copies, isGood)]) : faulty;
  const good = [...concerned].map((part) => ({
    part,
    places: copies.filter(({ parts }) => parts.some((each) => each.part === part && isGood(each))).map(placeOf),
  }));
  return { verdict: verdictOf(copies, good), good };
}

function verdictOf(copies: readonly CheckedCopy[], good: Outcome["good"]): Outcome["verdict"] {
  const bad = copies.some(({ state }) => state === "damaged" || state === "missing");
  const unread = copies.some(({ state }) => state === "unread");
  if (!bad) return unread || copies.length === 0 ? "unread" : "whole";
  if (good.length > 0 && good.every(({ places }) => places.length > 0)) return "damaged";
  // Of a copy that could not be read nobody knows.
  return unread ? "damaged" : "lost";
}

function partsThat(copies: readonly CheckedCopy[], is: (part: CheckedPart) => boolean): Set<string> {
  return new Set(copies.flatMap(({ parts }) => parts.filter(is).map(({ part }) => part)));
}

function isFaulty({ state }: Pick<CheckedPart, "state">): boolean {
  return state === "damaged" || state === "missing";
}

function isGood({ state }: Pick<CheckedPart, "state">): boolean {
  return state === "whole" || state === "read";
}

function placeOf({ place, nodeID }: CheckedCopy): string {
  return place === "store" ? "store" : `node/${nodeID}`;
}

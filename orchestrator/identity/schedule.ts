/**
 * Which key signs, which keys are published, and what a rotation changes, all derived from the keys and the time:
 *
 * next      published ahead of its time, so that every verifier knows the key before it meets a token of it
 * signing   the newest key whose time has come
 * retired   published until the last token that it signed has expired, and its private half is removed
 *
 * A rotation stores one key and nothing else, so no crash can leave half of it. Pure.
 */

import type { Algorithm, KeyPlan } from "../store/identity/identity.ts";
import type { IdentityKey } from "../store/identity/record.ts";

export interface Times {
  /** Time for which a key is published before it signs, ms. */
  readonly aheadMs: number;
  /** Age at which a key gets a successor, ms; 0: never by itself. */
  readonly rotateMs: number;
}

export type ScheduledKey = IdentityKey &
  (
    | { readonly state: "next" | "signing"; readonly publishedUntil: undefined }
    | { readonly state: "retired"; readonly publishedUntil: number }
  );

/** How far the clock of a verifier may be behind. */
const CLOCK_SKEW_MS = 300_000;

/** @param keys in the order in which they were made */
export function schedule(keys: readonly IdentityKey[], now: number): ScheduledKey[] {
  const signer = signerOf(keys, now);
  return keys.map((key, index): ScheduledKey => {
    const successor = keys[index + 1];
    if (signer === undefined || successor === undefined || key.sequence >= signer.sequence) {
      return { ...key, state: key === signer ? "signing" : "next", publishedUntil: undefined };
    }
    return { ...key, state: "retired", publishedUntil: successor.signsFrom + key.tokenMs + CLOCK_SKEW_MS };
  });
}

/** Undefined: there is no key. */
export function signerOf(keys: readonly IdentityKey[], now: number): IdentityKey | undefined {
  const able = keys.filter(({ sealedPrivateKey }) => sealedPrivateKey !== undefined);
  // After a clock was set back no key's time may have come yet.
  return able.findLast(({ signsFrom }) => signsFrom <= now) ?? able[0];
}

/** The first key signs at once; one of another algorithm takes over as in a rotation. */
export function planStart(keys: readonly IdentityKey[], now: number, ask: Times & { algorithm: Algorithm }): KeyPlan {
  const newest = keys.at(-1);
  if (newest === undefined) return { addAt: now };
  return newest.algorithm === ask.algorithm ? {} : { addAt: takeOver(keys, now, ask) };
}

/** Repeating a rotation before the new key signs changes nothing. */
export function planRotation(keys: readonly IdentityKey[], now: number, times: Times): KeyPlan {
  const waiting = schedule(keys, now).some(({ state }) => state === "next");
  return waiting ? {} : { addAt: takeOver(keys, now, times) };
}

/** Removes a key at once: verifiers refuse its tokens. Repeating it changes nothing. */
export function planRevocation(keys: readonly IdentityKey[], now: number, kid: string): KeyPlan {
  const scheduled = schedule(keys, now);
  const revoked = scheduled.find((key) => key.kid === kid);
  if (revoked === undefined) return {};
  if (revoked.state !== "signing") return { remove: [kid] };
  const next = scheduled.find(({ state }) => state === "next");
  return { remove: [kid], ...(next === undefined ? { addAt: now } : { move: { kid: next.kid, signsFrom: now } }) };
}

/** Begins a rotation that is due by age, and removes what retired keys no longer need. */
export function planRound(keys: readonly IdentityKey[], now: number, times: Times): KeyPlan {
  const newest = keys.at(-1);
  const due = times.rotateMs > 0 && newest !== undefined && newest.createdAt + times.rotateMs <= now;
  const retired = schedule(keys, now).filter((key) => key.state === "retired");
  return {
    ...(due ? planRotation(keys, now, times) : {}),
    erase: retired.filter(({ sealedPrivateKey }) => sealedPrivateKey !== undefined).map(({ kid }) => kid),
    remove: retired.filter(({ publishedUntil }) => publishedUntil <= now).map(({ kid }) => kid),
  };
}

/** Not before an earlier key, also after the clock was set back. */
function takeOver(keys: readonly IdentityKey[], now: number, { aheadMs }: Times): number {
  return Math.max(now + aheadMs, ...keys.map(({ signsFrom }) => signsFrom));
}

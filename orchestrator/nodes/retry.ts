/**
 * The one policy by which a call to a node is repeated: what a node's error says about the call, whether the same call is
 * made again, how long to wait before, and until when. Callers repeat only calls that name what they do by an id of the
 * record, so that the node finds the work of the first call when the second arrives.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { AppError, type ErrorCode } from "../../shared/http/errors.ts";

/**
 * `silence`: no answer, so the call may have been carried out. `busy`: the node has no room and began nothing. `not now`:
 * the agent is starting, stopping or being replaced. `broken`: an error of the agent's own. `refusal`: its last word.
 */
type Verdict = "silence" | "busy" | "not now" | "broken" | "refusal";

const VERDICTS: { readonly [Code in ErrorCode]?: Verdict } = {
  node_unreachable: "silence",
  node_busy: "busy",
  unavailable: "not now",
  unauthorized: "not now",
  rate_limited: "not now",
  internal: "broken",
};

export function verdictOf({ code }: AppError): Verdict {
  return VERDICTS[code] ?? "refusal";
}

interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** Between calls to a node that does not answer. */
const SILENT: Backoff = { firstMs: 100, longestMs: 2_000 };
/** Between calls to nodes that have no room at the moment: starts take about so long. */
const BUSY: Backoff = { firstMs: 100, longestMs: 100 };

/** A fifth of the full wait to all of it, so that callers who failed together do not call again together. */
export function backoffMs(failures: number, { firstMs, longestMs }: Backoff, random: () => number): number {
  return Math.min(longestMs, firstMs * 2 ** failures) * (0.2 + 0.8 * random());
}

export function busyWaitMs(random: () => number): number {
  return backoffMs(0, BUSY, random);
}

export interface RetryOptions {
  readonly now: () => number;
  readonly random: () => number;
  /** No call begins later than this after the first. Each call has a time limit of its own. */
  readonly patienceMs: number;
  /** The same call was made before, and its answer was lost: what is found now may be the work of that one. */
  readonly repeated?: boolean;
  /** `wait`: no other node can do it, so a busy one is called again. */
  readonly whenBusy?: "refuse" | "wait";
}

/**
 * Whether an error leaves it open what the node did, and whether the same call is made again. After a lost answer (`unsure`)
 * a node that says no more than that it is busy or broken has not looked whether the work is done already.
 */
export function judge(
  error: AppError,
  { unsure, whenBusy }: { readonly unsure: boolean; readonly whenBusy: "refuse" | "wait" },
): { readonly repeat: boolean; readonly unsure: boolean } {
  const verdict = verdictOf(error);
  if (verdict === "refusal") return { repeat: false, unsure: false };
  const open = unsure || verdict === "silence";
  return { repeat: open || (verdict === "busy" && whenBusy === "wait"), unsure: open };
}

/** The node's answer or its refusal; AppError `node_unreachable` when it is not known what the node did. */
export async function callAgain<T>(call: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { now, random, patienceMs, repeated = false, whenBusy = "refuse" } = options;
  const until = now() + patienceMs;
  let unsure = repeated;
  for (let failures = 0; ; failures++) {
    let waitMs: number;
    try {
      return await call();
    } catch (reason) {
      const error = AppError.from(reason);
      const judged = judge(error, { unsure, whenBusy });
      unsure = judged.unsure;
      waitMs = backoffMs(failures, unsure ? SILENT : BUSY, random);
      if (!judged.repeat || now() + waitMs > until) {
        if (!unsure || verdictOf(error) === "silence") throw reason;
        throw new AppError("node_unreachable", error.message, { cause: reason });
      }
    }
    await sleep(waitMs);
  }
}

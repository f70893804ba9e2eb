/**
 * The one policy for repeating calls to nodes: what an error says about the call, whether to make the same call again,
 * how long to wait before, and until when. Callers repeat only calls that carry an id of the record, so that the node
 * recognises the work of the first call when the second one arrives.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { AppError, type ErrorCode } from "../../shared/http/errors.ts";

/**
 * `silence`: no answer, so the node may have carried the call out. `busy`: the node has no room and began nothing. `not
 * now`: the agent is starting, stopping or being replaced. `broken`: a fault of the agent. `refusal`: its final answer.
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

/** Waits between calls to a node that does not answer. */
const SILENT: Backoff = { firstMs: 100, longestMs: 2_000 };
/** Waits between calls to nodes that have no room at the moment: a start takes about this long. */
const BUSY: Backoff = { firstMs: 100, longestMs: 100 };

/** A random part of the full wait, at least a fifth, so that callers that failed together do not call again together. */
export function backoffMs(failures: number, { firstMs, longestMs }: Backoff, random: () => number): number {
  return Math.min(longestMs, firstMs * 2 ** failures) * (0.2 + 0.8 * random());
}

export function busyWaitMs(random: () => number): number {
  return backoffMs(0, BUSY, random);
}

export interface RetryOptions {
  readonly now: () => number;
  readonly random: () => number;
  /** Time after the first call in which further calls may begin. Each call also has a time limit. */
  readonly patienceMs: number;
  /** The same call was made before and its answer was lost, so the node may have done the work already. */
  readonly repeated?: boolean;
  /** `wait`: no other node can do it, so a busy one is called again. */
  readonly whenBusy?: "refuse" | "wait";
}

/**
 * Decides whether an error leaves open what the node did, and whether to make the same call again. After a lost answer
 * (`unsure`) a node that only reports that it is busy or broken has not checked whether the work is done already.
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

/** The node's answer or its refusal. @throws {AppError} node_unreachable when the outcome on the node is unknown. */
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

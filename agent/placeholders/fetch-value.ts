/** Asks the orchestrator for one value. No error and no log holds the value. */

import { setTimeout as delay } from "node:timers/promises";
import type { valueApi } from "../../shared/agent-api/value-shapes.ts";
import type { Client } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { PlaceholderAnswer } from "../egress/channel/messages.ts";

/**
 * Limit of one attempt. A value is used until the end of the attempt that it came from or for a second from its beginning,
 * so a secret is used for less than two seconds after its deletion.
 */
const ATTEMPT_LIMIT_MS = 1_900;
/** Pauses before further attempts at an orchestrator that does not answer: it may be starting again. */
const PAUSES_MS = [100, 400];

export type Result = "used" | "missing" | "refused" | "unavailable";

export interface Fetched {
  readonly answer: PlaceholderAnswer;
  readonly result: Result;
  /** Beginning of the attempt that was answered, in unix milliseconds. */
  readonly askedAt: number;
  /** Until when the orchestrator lets the node keep the value. */
  readonly usableUntil: number;
}

export type Orchestrator = Pick<Client<typeof valueApi>, "resolveValue">;

interface FetchValueDeps {
  readonly orchestrator: Orchestrator;
  readonly now: () => number;
  readonly signal: AbortSignal;
  /** For tests: pauses before further attempts. */
  readonly pausesMs?: readonly number[];
}

/** Never rejects. */
export async function fetchValue(
  asked: { readonly executionId: string; readonly asks: string },
  deps: FetchValueDeps,
): Promise<Fetched> {
  for (const pauseMs of deps.pausesMs ?? PAUSES_MS) {
    const fetched = await attempt(asked, deps);
    if (fetched.result !== "unavailable" || deps.signal.aborted) return fetched;
    await delay(pauseMs, undefined, { signal: deps.signal }).catch(() => undefined);
  }
  return attempt(asked, deps);
}

async function attempt(
  body: { readonly executionId: string; readonly asks: string },
  { orchestrator, now, signal }: FetchValueDeps,
): Promise<Fetched> {
  const askedAt = now();
  const without = (result: Result, problem: string): Fetched => ({
    answer: { problem },
    result,
    askedAt,
    usableUntil: 0,
  });
  try {
    const { value, usableUntil } = await orchestrator.resolveValue({ body }, { signal, timeoutMs: ATTEMPT_LIMIT_MS });
    return { answer: { value }, result: "used", askedAt, usableUntil };
  } catch (error) {
    const { status, message } = AppError.from(error);
    if (status === 404) return without("missing", message);
    if (status === 403) return without("refused", message);
    return without("unavailable", "the orchestrator does not answer");
  }
}

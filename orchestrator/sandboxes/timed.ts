/**
 * Measures what creates and forks have waited for: for the metrics, for an operator's collector where there is one, and for callers
 * where the operator asks for that (`SVC_SERVER_TIMING`).
 */

import type { Context } from "../../shared/http/contract.ts";
import { keepPart } from "../../shared/program/tracing/spans.ts";
import { createTiming, serverTiming, type Timing } from "../../shared/program/tracing/timing.ts";

type Op = "create" | "fork";

/** Runs the work of a request; the answer gets the header `Server-Timing` when it succeeds. */
export type Timed = <T>(
  op: Op,
  context: Pick<Context<unknown>, "header">,
  work: (timing: Timing) => Promise<T>,
) => Promise<T>;

/**
 * @param wanted whether answers get the header
 * @param onParts hears of the parts of each request that has succeeded, in milliseconds
 */
export function createTimed(wanted: boolean, onParts: (op: Op, parts: ReadonlyMap<string, number>) => void): Timed {
  return async (op, context, work) => {
    const timing = createTiming(keepPart);
    const begun = performance.now();
    const result = await work(timing);
    const parts = timing.parts();
    onParts(op, parts);
    if (wanted) {
      const total = ["total", performance.now() - begun] as const;
      context.header("server-timing", serverTiming([total, ...parts]));
    }
    return result;
  };
}

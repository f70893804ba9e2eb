/**
 * Tells callers what their request has waited for, where the operator asks for that (`SVC_SERVER_TIMING`), and an operator's
 * collector, where there is one.
 */

import type { Context } from "../../shared/http/contract.ts";
import { areSpansKept, keepSpan, sinceEpoch } from "../../shared/program/tracing/spans.ts";
import { createTiming, noTiming, serverTiming, type Timing } from "../../shared/program/tracing/timing.ts";
import { currentTrace, partOf } from "../../shared/program/tracing/trace.ts";

/** Runs the work of a request; the answer gets the header `Server-Timing` when it succeeds. */
export type Timed = <T>(context: Pick<Context<unknown>, "header">, work: (timing: Timing) => Promise<T>) => Promise<T>;

export function createTimed(wanted: boolean): Timed {
  return async (context, work) => {
    if (!wanted && !areSpansKept()) return work(noTiming);
    const timing = createTiming(keepPart);
    const begun = performance.now();
    const result = await work(timing);
    if (!wanted) return result;
    const total = ["total", performance.now() - begun] as const;
    context.header("server-timing", serverTiming([total, ...timing.parts()]));
    return result;
  };
}

/** A part of the request under way. */
function keepPart(name: string, begun: number, ms: number): void {
  const trace = currentTrace();
  if (trace === undefined) return;
  keepSpan({
    trace: partOf(trace),
    name,
    kind: "internal",
    begun: sinceEpoch(begun),
    ms,
    attributes: {},
    hasFailed: false,
  });
}

/** Tells callers what their request has waited for, where the operator asks for that (`SVC_SERVER_TIMING`). */

import type { Context } from "../../shared/http/contract.ts";
import { createTiming, noTiming, serverTiming, type Timing } from "../../shared/program/timing.ts";

/** Runs the work of a request; the answer gets the header `Server-Timing` when it succeeds. */
export type Timed = <T>(context: Pick<Context<unknown>, "header">, work: (timing: Timing) => Promise<T>) => Promise<T>;

export function createTimed(wanted: boolean): Timed {
  return async (context, work) => {
    if (!wanted) return work(noTiming);
    const timing = createTiming();
    const begun = performance.now();
    const result = await work(timing);
    const total = ["total", performance.now() - begun] as const;
    context.header("server-timing", serverTiming([total, ...timing.parts()]));
    return result;
  };
}

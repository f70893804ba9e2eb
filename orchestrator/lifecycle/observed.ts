/** Measures a change of a sandbox's state, for the metrics. */

import { AppError } from "../../shared/http/errors.ts";

export interface ChangeOutcome {
  readonly result: "ok" | AppError["code"];
  readonly seconds: number;
}

export interface Observing {
  readonly now: () => number;
  readonly observe: (outcome: ChangeOutcome) => void;
}

/** Runs the change, and reports its duration and how it ended. Rejects as the change does. */
export async function observed<T>({ now, observe }: Observing, change: () => Promise<T>): Promise<T> {
  const begun = now();
  const report = (result: ChangeOutcome["result"]) => observe({ result, seconds: (now() - begun) / 1000 });
  try {
    const done = await change();
    report("ok");
    return done;
  } catch (reason) {
    report(AppError.from(reason).code);
    throw reason;
  }
}

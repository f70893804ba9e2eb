/** Takes a sample of every project's use in each of the finest steps of time. */

import { FINEST, slotOf } from "../store/usage/steps.ts";
import type { ProjectSample, UsageStore } from "../store/usage/usage.ts";
import type { Meter } from "./meter.ts";

export interface SamplingDeps {
  readonly store: Pick<UsageStore, "add">;
  readonly meter: Pick<Meter, "flush">;
  readonly now: () => number;
  /** For the metrics of programs that collect them. */
  readonly observe: (samples: readonly ProjectSample[]) => void;
}

/** A pause of the process that is longer is a time in which nothing is known. */
const LONGEST_PAUSE_S = 60;

/** One round. Steps that a busy process has missed get what is in use now. */
export function createSampling({ store, meter, now, observe }: SamplingDeps): () => Promise<void> {
  let began: number | undefined;
  let last: number | undefined;
  return async () => {
    const at = slotOf(now() / 1000, FINEST);
    if (last === undefined || at - last > LONGEST_PAUSE_S || at < last) began = undefined;
    const missed: number[] = [];
    if (began !== undefined && last !== undefined)
      for (let slot = last + FINEST; slot < at; slot += FINEST) missed.push(slot);
    const since = began ?? at;
    await meter.flush(async (heard) => observe(await store.add({ heard, at, missed, began: since })));
    began = since;
    last = at;
  };
}

/** Waits for a state outside a test runner: polls with a limit, and names the state that never came. */

import { setTimeout as wait } from "node:timers/promises";

export interface UntilOptions {
  /** Completes "… did not happen within". */
  readonly what: string;
  readonly timeoutMs: number;
  readonly everyMs?: number;
}

/** Resolves when `check` is true; throws when that takes longer than `timeoutMs`. */
export async function until(check: () => boolean | Promise<boolean>, options: UntilOptions): Promise<void> {
  const limit = Date.now() + options.timeoutMs;
  while (!(await check())) {
    if (Date.now() > limit) throw new Error(`${options.what} did not happen within ${options.timeoutMs} ms`);
    await wait(options.everyMs ?? 50);
  }
}

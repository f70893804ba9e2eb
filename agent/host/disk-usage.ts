/** Measures a writable layer. The sandbox made the tree, so the walk has a time limit. */

import type { RunCommand } from "./command.ts";

const LIMIT_MS = 2_000;

export function diskUsage(run: RunCommand): (directory: string) => Promise<number | undefined> {
  return async (directory) => {
    try {
      const text = await run("nice", ["-n", "19", "du", "-sxB1", "--", directory], { timeoutMs: LIMIT_MS });
      const bytes = Number(text.split("\t", 1)[0]);
      return Number.isSafeInteger(bytes) ? bytes : undefined;
    } catch {
      return undefined;
    }
  };
}

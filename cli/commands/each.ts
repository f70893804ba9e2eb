/** One change of several things. */

import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";

/** Things that change at a time. */
const AT_ONCE = 4;

/** Does the work for each, and goes on where one fails: the exit code is that of the first failure. */
export async function each(
  { out, signal }: Context,
  ids: readonly string[],
  work: (id: string) => Promise<string>,
): Promise<number> {
  let exitCode = 0;
  const left = [...ids];
  async function worker(): Promise<void> {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      try {
        await out.line(await work(id));
      } catch (error) {
        if (signal.aborted || !(error instanceof Failure) || ids.length === 1) throw error;
        out.note(`error: ${id}: ${error.message}`);
        if (exitCode === 0) exitCode = error.exitCode;
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return exitCode;
}

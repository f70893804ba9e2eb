/** Whether the test's own process keeps something, by a collection of its garbage. */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc") as () => void;

export function collect(): void {
  gc();
}

/** Nothing refers to any of them any more. To be polled: who asks keeps them until the end of its turn. */
export function areCollected(...all: readonly WeakRef<object>[]): boolean {
  collect();
  return all.every((each) => each.deref() === undefined);
}

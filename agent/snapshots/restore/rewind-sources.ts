/** Where a start from a snapshot comes from: for a rewind the copy that waits for it, else a new container. */

import type { Sources } from "../../sandboxes/start.ts";
import type { ReadyCopies } from "./ready-copies.ts";
import { type RewindDeps, rewindToCopy } from "./rewind-copy.ts";

export function rewindSources(
  startCopy: Sources["snapshot"],
  ready: Pick<ReadyCopies, "prepare" | "take">,
  deps: RewindDeps,
): Pick<Sources, "snapshot" | "rewindCopy"> {
  const stored = (id: string) => {
    const snapshot = deps.stores.snapshots.get(id);
    return snapshot?.kind === "checkpoint" && snapshot.state === "stored" ? snapshot : undefined;
  };
  return {
    async rewindCopy(spec, signal) {
      const { body, origin, executionId } = spec;
      const snapshot = stored(origin.snapshotId);
      if (snapshot === undefined || !origin.memory) return undefined;
      const container = await ready.take({ body, snapshot }, signal);
      if (container === undefined) return undefined;
      try {
        const launched = await rewindToCopy(spec, { container, snapshot }, deps, signal);
        ready.prepare({ body, snapshot });
        return launched;
      } catch (error) {
        if (signal.aborted) throw error;
        deps.log.warn({ err: error, executionId }, "a copy for a rewind is not usable, making a new one");
        return undefined;
      }
    },
    async snapshot(spec, signal) {
      const launched = await startCopy(spec, signal);
      const { body, origin } = spec;
      const snapshot = origin.is === "rewind" && origin.memory ? stored(origin.snapshotId) : undefined;
      if (snapshot !== undefined) ready.prepare({ body, snapshot });
      return launched;
    },
  };
}

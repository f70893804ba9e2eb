/** Where a start from a snapshot comes from: for a rewind the copy that waits for it, else a new container. */

import type { Teardown } from "../../../shared/program/teardown.ts";
import type { AgentConfig } from "../../config.ts";
import type { SandboxMachine } from "../../sandboxes/machine.ts";
import type { Sources } from "../../sandboxes/start.ts";
import { createReadyCopies, type ReadyCopies } from "./ready-copies.ts";
import { endCopy, makeRewindCopy, type RewindDeps, rewindToCopy } from "./rewind-copy.ts";

const MIB = 1024 * 1024;

interface RewindsDeps extends RewindDeps {
  readonly config: Pick<AgentConfig, "rewindCopySeconds" | "poolMemoryPercent" | "poolReservedMb">;
  readonly machine: Pick<SandboxMachine, "host">;
  readonly isRunning: (sandboxId: string) => boolean;
}

/** The copies end with the teardown. */
export function startRewinds(startCopy: Sources["snapshot"], deps: RewindsDeps, teardown: Teardown) {
  const { config, machine, disposal, stores, isRunning, now, log } = deps;
  const copies = createReadyCopies({
    make: (ask, signals) => makeRewindCopy(ask, deps, signals),
    dispose: (container) => endCopy(container, disposal),
    isRunning,
    isStored: (id) => stores.snapshots.get(id)?.state === "stored",
    keepMs: config.rewindCopySeconds * 1_000,
    freeMemory: () => machine.host.freeMemory(),
    reservedMemory: config.poolReservedMb * MIB,
    memoryBound: (machine.host.load().memoryTotalBytes * config.poolMemoryPercent) / 100,
    now,
    log,
  });
  teardown.add("copies for rewinds", () => copies.stop());
  return { copies, sources: rewindSources(startCopy, copies, deps) };
}

function rewindSources(
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

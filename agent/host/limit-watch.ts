/** Watches the limits that all programs of the machine share: warns early, and refuses new sandboxes before one is used up. */

import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { type Loop, loop } from "../../shared/program/loop.ts";
import type { HostLimitName, HostLimits } from "./limits.ts";

const EVERY_MS = 10_000;
const WARN_SHARE = 0.8;
/** Below this share a warning is over, so that one that swings around the threshold is logged once. */
const OVER_SHARE = 0.7;
const REFUSE_SHARE = 0.95;

/**
 * What every sandbox needs, and of which each one can only take a part. No sandbox is refused for another limit: one
 * sandbox alone could use that up, and would keep all others from the node.
 */
const NEEDED: readonly HostLimitName[] = ["connections", "open_files", "processes", "terminals"];

interface LimitWatchDeps {
  readonly read: () => HostLimits;
  readonly log: Log;
  /** For tests. */
  readonly everyMs?: number;
}

export interface LimitWatch {
  /** As read last; nothing before `start`. */
  seen(): HostLimits;
  /** Why no sandbox can begin now; undefined while there is room. */
  refusal(): AppError | undefined;
  start(): void;
  stop(): Promise<void>;
}

export function createLimitWatch({ read, log, everyMs = EVERY_MS }: LimitWatchDeps): LimitWatch {
  const state = { seen: {} as HostLimits };
  const warned = new Set<string>();
  let rounds: Loop | undefined;

  const round = () => {
    state.seen = read();
    for (const [limit, { used, max }] of Object.entries(state.seen)) {
      if (used < max * OVER_SHARE) warned.delete(limit);
      if (used < max * WARN_SHARE || warned.has(limit)) continue;
      warned.add(limit);
      log.warn({ limit, used, max }, "a limit of the kernel that all sandboxes of the machine share is nearly used up");
    }
  };

  return {
    seen: () => state.seen,
    refusal() {
      for (const name of NEEDED) {
        const { used, max } = state.seen[name] ?? { used: 0, max: 1 };
        if (used < max * REFUSE_SHARE) continue;
        const what = `the machine uses ${used} of ${max} ${name.replace("_", " ")}`;
        return new AppError("node_busy", `${what}: no sandbox can begin`);
      }
      return undefined;
    },
    start: () => void (rounds ??= loop({ name: "limits of the kernel", everyMs, log }, round)),
    async stop() {
      await rounds?.stop();
    },
  };
}

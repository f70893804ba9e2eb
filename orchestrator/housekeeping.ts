/** The slow rounds: transitions a crash cut short, sandboxes of silent nodes, history that is old enough. */

import type { Log } from "../shared/log.ts";
import { type Loop, loop } from "../shared/loop.ts";
import type { Ending } from "./ending.ts";
import type { Nodes } from "./nodes.ts";
import type { Spawns } from "./spawns.ts";
import type { Store } from "./store/store.ts";

export interface HousekeepingDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly ending: Ending;
  readonly spawns: Pick<Spawns, "flush">;
  readonly now: () => number;
  readonly log: Log;
  readonly everyMs: number;
  readonly nodeLostMs: number;
  readonly historyMs: number;
}

const BATCH = 100;
const FORGET_EVERY_MS = 3_600_000;

/** Ends every start and kill that was under way before `before`: nobody is working on them any more. */
export async function finishAbandoned(deps: Pick<HousekeepingDeps, "store" | "ending" | "log">, before: number) {
  const stuck = await deps.store.sandboxes.stuck(before, BATCH);
  await Promise.all(
    stuck.map(async ({ id, state }) => {
      deps.log.warn({ sandboxId: id, state }, "finishing an abandoned transition");
      await deps.ending.kill(id, "abandoned");
    }),
  );
}

export function startHousekeeping(deps: HousekeepingDeps): Loop {
  const startedAt = deps.now();
  let forgottenAt = 0;

  async function loseSilentNodes(): Promise<void> {
    for (const { id, lastHeardAt } of deps.nodes.list()) {
      // Our own absence is not the node's silence.
      const silentSince = Math.max(lastHeardAt, startedAt);
      if (deps.now() - silentSince < deps.nodeLostMs) continue;
      for (const record of await deps.store.sandboxes.onNode(id)) {
        if (record.state !== "running") continue;
        await deps.ending.ended({ sandboxId: record.id, executionId: record.executionId }, "node_lost");
      }
    }
  }

  async function forget(): Promise<void> {
    if (deps.now() - forgottenAt < FORGET_EVERY_MS) return;
    forgottenAt = deps.now();
    const before = deps.now() - deps.historyMs;
    const count = await deps.store.sandboxes.forget(before);
    await deps.store.events.forget(before);
    if (count > 0) deps.log.info({ count }, "old sandboxes forgotten");
  }

  return loop({ name: "housekeeping", everyMs: deps.everyMs, log: deps.log }, async () => {
    await finishAbandoned(deps, deps.now());
    await loseSilentNodes();
    await deps.spawns.flush();
    await forget();
  });
}

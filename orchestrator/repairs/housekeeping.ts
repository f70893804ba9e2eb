/** Periodic repairs: transitions that a crash interrupted, sandboxes of silent nodes, old history. */

import type { Log } from "../../shared/program/log.ts";
import { type Loop, loop } from "../../shared/program/loop.ts";
import type { OrchestratorConfig } from "../config.ts";
import { afterLoss, isResuming } from "../lifecycle/record-state.ts";
import type { SnapshotRemover } from "../lifecycle/snapshots/snapshot-removal.ts";
import type { Lifecycle } from "../lifecycle/wire.ts";
import type { Hearing } from "../nodes/hear-others.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Rounds } from "../store/membership/leases.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Store } from "../store/store.ts";
import type { Spawns } from "../templates/usage.ts";
import { createBlobGarbage } from "./blobs/blob-garbage.ts";
import { createForgetting } from "./forgetting.ts";

/** What finishes transitions that no process works on any more. */
export interface AbandonedDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly lifecycle: Pick<
    Lifecycle,
    "ending" | "nodeLoss" | "pausing" | "resuming" | "rewinding" | "checkpointing" | "networks"
  >;
  readonly now: () => number;
  readonly log: Log;
}

export interface HousekeepingDeps {
  readonly abandoned: AbandonedDeps;
  readonly snapshots: Pick<SnapshotRemover, "again">;
  readonly spawns: Spawns;
  readonly config: OrchestratorConfig;
  readonly rounds: Rounds;
  readonly hearing: Pick<Hearing, "heardForMs">;
  /** Called when a node counts as lost. */
  readonly onLost?: () => void;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const BATCH = 100;

/** Pause before a failed repair is tried again. */
const RETRY_MS = 15_000;
/** Delay of the repairs on an unreachable node, so that the others come first. */
const ABSENT_MS = 1_000;
/** Longest time of a fork or snapshot. */
export const SNAPSHOT_LEFT_MS = 1_800_000;

/**
 * Finishes each transition whose deadline has passed, because no process works on it any more. Where the sandbox could
 * be lost, it asks the node again or undoes the transition; it completes abandoned creates and kills as ends. Then it
 * finishes changes of network options.
 */
export async function finishAbandoned(deps: AbandonedDeps): Promise<void> {
  const stuck = await deps.store.sandboxes.stuck(deps.now(), BATCH);
  await Promise.all(
    stuck.map(async (record) => {
      const { id, state, executionId } = record;
      try {
        if (await finish(record, deps)) deps.log.warn({ sandboxId: id, state }, "finished an abandoned transition");
        else await deps.store.sandboxes.postpone(id, executionId, deps.now() + ABSENT_MS);
      } catch (error) {
        deps.log.warn({ err: error, sandboxId: id, state }, "abandoned transition could not be finished yet");
        await deps.store.sandboxes.postpone(id, executionId, deps.now() + RETRY_MS);
      }
    }),
  );
  await deps.lifecycle.networks.recover();
}

/** False: the node is unreachable; the record stays as it is. */
async function finish(record: SandboxRecord, deps: AbandonedDeps): Promise<boolean> {
  if (!deps.nodes.mayChange(record.nodeId)) return false;
  // A kill, and that of a create, ends without the node.
  if (afterLoss(record) !== "stays" && (await isRemoved(record.nodeId, deps)))
    return deps.lifecycle.nodeLoss.removed(record);
  if (record.state === "snapshotting") {
    await deps.lifecycle.checkpointing.recover(record);
    return true;
  }
  const resuming = isResuming(record);
  const rewinding = record.state === "rewinding";
  if (record.state !== "pausing" && !resuming && !rewinding) return deps.lifecycle.ending.kill(record.id, "abandoned");
  const status = deps.nodes.get(record.nodeId)?.status;
  if (status === undefined || status === "unhealthy" || status === "connecting") return false;
  if (resuming) await deps.lifecycle.resuming.recover(record);
  else if (rewinding) await deps.lifecycle.rewinding.recover(record);
  else await deps.lifecycle.pausing.recover(record);
  return true;
}

/** Its operator removed the node while the transition began. A node that only this orchestrator does not know yet has a row. */
async function isRemoved(nodeId: string, { store, nodes }: Pick<AbandonedDeps, "store" | "nodes">): Promise<boolean> {
  return nodes.get(nodeId) === undefined && (await store.nodes.getMany([nodeId])).length === 0;
}

export function startHousekeeping(deps: HousekeepingDeps): Pick<Loop, "stop"> {
  const { abandoned, rounds, config } = deps;
  const { store, nodes, now, log } = abandoned;
  const { ending, nodeLoss, checkpointing } = abandoned.lifecycle;
  const endedMs = config.endedSandboxKeepHours * HOUR_MS;
  const historyMs = config.historyDays * DAY_MS;
  const everyMs = config.reconcileEveryMs;
  const collectBlobs = createBlobGarbage({ refs: store.blobRefs, nodes, now, log });
  const forget = createForgetting({ store, endedMs, historyMs, now, log });

  /**
   * A node is lost when no orchestrator has heard it for the limit, by the database's clock and by the time that has passed here,
   * although each orchestrator could have recorded a report. A clock that is set makes all nodes silent by it alone.
   */
  async function loseSilentNodes(): Promise<void> {
    if (deps.hearing.heardForMs() < config.nodeLostMs) return;
    for (const id of await store.nodes.silentFor(config.nodeLostMs)) {
      // A report in which nothing has changed is not written at once.
      if (nodes.silentMs(id) < config.nodeLostMs) continue;
      if (await store.nodes.lose(id, config.nodeLostMs)) {
        log.error({ nodeId: id }, "a node counts as lost");
        deps.onLost?.();
      }
      for (const record of await store.sandboxes.onNode(id)) {
        try {
          await nodeLoss.lost(record);
        } catch (error) {
          log.warn({ err: error, sandboxId: record.id, nodeId: id }, "could not settle a sandbox of a lost node yet");
        }
      }
    }
  }

  const own = loop({ name: "housekeeping", everyMs, log }, async () => {
    await ending.recordLate();
    await store.operations.abandonLapsed();
    await finishAbandoned(abandoned);
    await checkpointing.sweep(now() - SNAPSHOT_LEFT_MS);
    await loseSilentNodes();
    deps.snapshots.again();
    await deps.spawns.flush();
    await collectBlobs();
  });
  const history = rounds({ name: "history", everyMs, log }, forget);
  return {
    async stop() {
      await Promise.all([own.stop(), history.stop()]);
    },
  };
}

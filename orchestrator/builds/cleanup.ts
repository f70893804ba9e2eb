/** Deletes unused builds and archives, and asks nodes to delete the builds that were removed. */

import { isError } from "../../shared/http/errors.ts";
import { loop } from "../../shared/program/loop.ts";
import type { Base } from "../base/base.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Pools } from "../nodes/pools/pool-targets.ts";
import type { Build } from "../store/builds/record.ts";
import type { Store } from "../store/store.ts";
import type { Archives, StoredArchive } from "./uploads/archives.ts";

interface Leftovers {
  readonly builds: readonly Build[];
  readonly archives: readonly StoredArchive[];
}

export interface BuildCleaning {
  /** Builds and archives without a user; `dryRun` lists them and changes nothing. */
  collect(options: { readonly dryRun: boolean; readonly keepHours?: number }): Promise<Leftovers>;
  /** Starts the round that sends removals to nodes at once. */
  soon(): void;
  stop(): Promise<void>;
}

export interface BuildCleaningDeps {
  readonly base: Base;
  readonly store: Store;
  readonly nodes: Nodes;
  readonly archives: Archives;
  readonly pools: Pools;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const COLLECT_EVERY_MS = HOUR_MS;
/** Age at which a temporary file is left over from an interrupted upload: no upload takes longer. */
const UPLOAD_LEFT_MS = 6 * HOUR_MS;
const BATCH = 32;

export function startBuildCleaning(deps: BuildCleaningDeps): BuildCleaning {
  const { store, archives } = deps;
  const { config, now, log, rounds } = deps.base;
  let collectedAt = now();
  let filesCollectedAt = now();

  async function unneeded(before: number): Promise<StoredArchive[]> {
    const old = (await archives.list()).filter(({ usedAt }) => usedAt <= before);
    const found: StoredArchive[] = [];
    for (const templateId of new Set(old.map((archive) => archive.templateId))) {
      const needed = await store.buildLeftovers.neededFiles(templateId);
      found.push(...old.filter((archive) => archive.templateId === templateId && !needed.has(archive.hash)));
    }
    return found;
  }

  async function collect({ dryRun, keepHours = config.buildKeepHours }: { dryRun: boolean; keepHours?: number }) {
    const before = now() - keepHours * HOUR_MS;
    const until = { ended: before, requested: before };
    if (dryRun) return { builds: await store.buildLeftovers.unused(until), archives: await unneeded(before) };
    const builds: Build[] = [];
    for (let some = await store.buildLeftovers.drop(until); some.length > 0; ) {
      builds.push(...some);
      some = await store.buildLeftovers.drop(until);
    }
    deps.pools.gone(builds.map(({ id }) => id));
    const removed = await collectFiles(before);
    if (builds.length + removed.length > 0) {
      log.info({ builds: builds.length, archives: removed.length }, "deleted unused builds and archives");
      removing.wake();
    }
    return { builds, archives: removed };
  }

  /** Those of this orchestrator's disk. */
  async function collectFiles(before: number): Promise<StoredArchive[]> {
    const removed = await unneeded(before);
    for (const { templateId, hash } of removed) await archives.remove(templateId, hash);
    await archives.sweepUnfinished(now() - UPLOAD_LEFT_MS);
    return removed;
  }

  // Not divided among the orchestrators: each has the uploads that it got, unless they share a directory.
  const ownFiles = loop({ name: "uploaded files", everyMs: config.reconcileEveryMs, log }, async () => {
    if (now() - filesCollectedAt < COLLECT_EVERY_MS) return;
    filesCollectedAt = now();
    const removed = await collectFiles(now() - config.buildKeepHours * HOUR_MS);
    if (removed.length > 0) log.info({ archives: removed.length }, "deleted unused archives");
  });

  async function removeOnNode(nodeId: string, buildId: string): Promise<void> {
    try {
      await deps.nodes.agent(nodeId).deleteBuild({ params: { buildId } }, { timeoutMs: config.stopTimeoutMs });
      await store.buildLeftovers.removed(buildId);
    } catch (error) {
      // The next round tries again; an unreachable node is not logged each time.
      if (!isError(error, "node_unreachable")) {
        log.warn({ err: error, nodeId, buildId }, "could not delete a build on its node");
      }
    }
  }

  const removing = rounds({ name: "build cleaning", everyMs: config.reconcileEveryMs, log }, async () => {
    const there = deps.nodes
      .list()
      .filter(({ status }) => status !== "unhealthy" && status !== "connecting")
      .map(({ id }) => id);
    const removals = await store.buildLeftovers.removals(there, BATCH);
    await Promise.all(removals.map(({ nodeId, buildId }) => removeOnNode(nodeId, buildId)));
    if (now() - collectedAt < COLLECT_EVERY_MS) return;
    collectedAt = now();
    // The nodes of older removals did not come back.
    await store.buildLeftovers.forgetRemovals(now() - config.historyDays * DAY_MS);
    await collect({ dryRun: false });
  });

  return {
    collect,
    soon: () => removing.wake(),
    async stop() {
      await Promise.all([removing.stop(), ownFiles.stop()]);
    },
  };
}

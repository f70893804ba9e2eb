/** Constructs the parts that build templates: archives of uploaded files, the queue, clean-up, and their handlers. */

import { dirname, join } from "node:path";
import type { Base } from "../base/base.ts";
import type { OrchestratorConfig } from "../config.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { placementPolicy } from "../nodes/placement.ts";
import type { Pools } from "../nodes/warm-pools.ts";
import type { Store } from "../store/store.ts";
import type { TemplateNames } from "../templates/names.ts";
import { startBuildCleaning } from "./cleanup.ts";
import { createBuildHandlers } from "./handlers.ts";
import { startBuildQueue } from "./queue.ts";
import { createBuildRequestHandlers } from "./request-handlers.ts";
import { createArchives } from "./uploads/archives.ts";

const DAY_MS = 86_400_000;
const MIB = 1024 * 1024;

interface StartBuildsDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly pools: Pools;
  readonly names: TemplateNames;
  readonly metrics: Metrics;
}

export async function startBuilds(base: Base, { store, nodes, pools, names, metrics }: StartBuildsDeps) {
  const { config, sealing, seeds, now, random, log, teardown, rounds } = base;
  const archives = createArchives(filesDirectory(config));
  // One process owns the uploads: those that were under way when it ended do not continue.
  await archives.sweepUnfinished(now());

  const cleaning = startBuildCleaning({
    store,
    nodes,
    archives,
    pools,
    rounds,
    now,
    log,
    everyMs: config.reconcileEveryMs,
    keepHours: config.buildKeepHours,
    stopTimeoutMs: config.stopTimeoutMs,
    historyMs: config.historyDays * DAY_MS,
  });
  teardown.add("build cleaning", () => cleaning.stop());
  const queue = startBuildQueue({
    store,
    nodes,
    sealing,
    now,
    random,
    log,
    placement: placementPolicy(config),
    everyMs: 500,
    pollEveryMs: config.buildPollMs,
    silentMs: config.nodeLostMs,
    queueMs: config.buildQueueMs,
    limitMs: config.buildLimitMs,
    placementTimeoutMs: config.placementTimeoutMs,
    perNode: config.maxNodeBuilds,
    perProject: async (id) => (await store.projects.find(id))?.limits.builds ?? config.maxProjectBuilds,
    ready: (build, former) => pools.replaced(former, build),
    observe: (result, seconds) => metrics.built(result, seconds),
    cleanSoon: () => cleaning.soon(),
  });
  teardown.add("builds", () => queue.stop());

  const handlers = {
    ...createBuildRequestHandlers({
      store,
      names,
      archives,
      now,
      seed: seeds.current,
      publicUrl: config.publicUrl,
      limits: (project) => ({
        cpuCount: project.limits.sandboxCPU ?? config.maxTemplateCpu,
        memoryMb: project.limits.sandboxMemoryMB ?? config.maxTemplateMemoryMb,
        contact: config.supportContact,
        diskMb: project.limits.sandboxDiskMB ?? config.maxTemplateDiskMb,
      }),
      defaults: {
        cpuCount: config.baseCpuCount,
        memoryMB: config.baseMemoryMb,
        diskMb: config.baseDiskMb,
        freeDiskMb: config.templateDiskMb,
      },
    }),
    ...createBuildHandlers({ store, names, archives, queue, sealing, limitMs: config.buildLimitMs }),
  };
  return {
    queue,
    cleaning,
    archives,
    handlers,
    files: {
      archives,
      now,
      seeds: seeds.all,
      maxBytes: config.maxUploadMb * MIB,
      isBuilding: (place: { nodeId: string; templateId: string; hash: string }) =>
        store.buildLeftovers.readsFile(place),
      isTemplate: async (id: string) => (await store.templates.get(id)) !== undefined,
    },
  };
}

function filesDirectory({ filesDirectory, database }: OrchestratorConfig): string {
  return filesDirectory ?? join(dirname(database), "files");
}

/** Constructs volumes: their handlers, the routes of their content, and what a create request mounts. */

import { createRateLimiter } from "../api/rate-limit.ts";
import type { Base } from "../app-parts.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Limits } from "../projects/limits.ts";
import type { Store } from "../store/store.ts";
import { createContent } from "./content.ts";
import { createVolumeHandlers } from "./handlers.ts";
import { createResolveMounts } from "./mounts.ts";
import { createVolumeTokens } from "./tokens.ts";
import { createVolumeWork } from "./volumes.ts";

/** For a node to make or delete a volume: on a busy disk that takes seconds. */
const CALL_LIMIT_MS = 30_000;

interface VolumeSources {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly nodeToken: (nodeId: string) => string;
  readonly limits: Limits;
}

export function startVolumes(base: Base, { store, nodes, nodeToken, limits }: VolumeSources) {
  const { config, now, log, teardown } = base;
  const tokens = createVolumeTokens(base.seeds.all, now);
  const work = createVolumeWork({
    ...base,
    store: store.volumes,
    nodes,
    placement: {
      cpuOvercommit: config.nodeCpuOvercommit,
      memoryOvercommit: config.nodeMemoryOvercommit,
      diskOvercommit: config.nodeDiskOvercommit,
    },
    limits: (project) => ({
      count: limits.of(project).volumes ?? config.maxProjectVolumes,
      totalMb: config.projectVolumeQuotaMb,
    }),
    sizeMb: config.volumeSizeMb,
    timeoutMs: CALL_LIMIT_MS,
    repairEveryMs: config.reconcileEveryMs,
  });
  const refusals = createRateLimiter(now);
  const perMinute = config.rateLimitFailedAuthPerMinute;
  const content = createContent({
    tokens,
    find: (projectId, id) => work.find(projectId, id),
    reach: (nodeId) => {
      const facts = nodes.get(nodeId)?.facts;
      return facts === undefined ? undefined : { url: facts.apiUrl, token: nodeToken(nodeId) };
    },
    refused: (address) => void refusals.take(address, { perSecond: perMinute / 60, burst: perMinute }),
    log,
  });
  teardown.add("content of volumes", () => content.stop());
  const repairs = work.startRepairs();
  teardown.add("volume repairs", () => repairs.stop());
  return {
    content,
    /** What the deletion of a project removes. */
    part: {
      name: "volumes",
      count: (projectId: string) => store.volumes.count(projectId),
      remove: (projectId: string) => work.deleteAll(projectId),
    },
    resolveMounts: createResolveMounts({ volumes: store.volumes, nodes }),
    handlers: createVolumeHandlers({ store: store.volumes, work, tokens }),
  };
}

/** Constructs volumes: their handlers, the routes of their content, and what a create request mounts. */

import type { Meeting } from "../../shared/tls/peers.ts";
import type { Limits } from "../access/limits.ts";
import type { Base } from "../base/base.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { placementPolicy } from "../nodes/placement/candidate.ts";
import type { Store } from "../store/store.ts";
import { createContent } from "./content.ts";
import { createVolumeHandlers } from "./handlers.ts";
import { createResolveMounts } from "./mounts.ts";
import { createVolumeSweep } from "./sweep.ts";
import { createVolumeTokens } from "./tokens.ts";
import { createUnknownVolumeHandlers } from "./unknown.ts";
import { createVolumeWork } from "./volumes.ts";

/** For a node to make or delete a volume: on a busy disk that takes seconds. */
const CALL_LIMIT_MS = 30_000;

/** Rounds of repairs between two comparisons of nodes with the records, which list every volume. */
const SWEEP_ROUNDS = 12;

interface VolumeSources {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly nodeToken: (nodeId: string) => string;
  /** How a node's `https` address is met. */
  readonly meeting: (nodeId: string) => Meeting | undefined;
  readonly limits: Limits;
  readonly metrics: Metrics;
  /** Base domain of the platform. */
  readonly domain: string;
}

export function startVolumes(base: Base, sources: VolumeSources) {
  const { store, nodes, nodeToken, meeting, limits, metrics, domain } = sources;
  const { config, background, now, random, log, teardown, rounds } = base;
  const tokens = createVolumeTokens(base.seeds.all, now);
  const work = createVolumeWork({
    background,
    now,
    random,
    log,
    store: store.volumes,
    nodes,
    placement: placementPolicy(config),
    limits: (project) => ({
      count: limits.of(project).volumes ?? config.maxProjectVolumes,
      totalMb: config.projectVolumeQuotaMb,
    }),
    sizeMb: config.volumeSizeMb,
    timeoutMs: CALL_LIMIT_MS,
    repairEveryMs: config.reconcileEveryMs,
    rounds,
  });
  const content = createContent({
    tokens,
    find: (projectId, id) => work.find(projectId, id),
    reach: (nodeId) => {
      const facts = nodes.get(nodeId)?.facts;
      if (facts === undefined) return undefined;
      return { url: facts.apiUrl, token: nodeToken(nodeId), meeting: meeting(nodeId) };
    },
    log,
  });
  teardown.add("content of volumes", () => content.stop());
  const repairs = work.startRepairs();
  teardown.add("volume repairs", () => repairs.stop());
  const sweep = createVolumeSweep({
    store: store.volumes,
    nodes,
    graceMs: config.orphanGraceMs,
    everyMs: SWEEP_ROUNDS * config.reconcileEveryMs,
    timeoutMs: CALL_LIMIT_MS,
    now,
    log,
    observe: (nodeId, { unknown, missing }) =>
      metrics.volumeProblems(nodeId, { unknown: unknown.length, missing: missing.length }),
    forget: (nodeId) => metrics.volumeProblems(nodeId, undefined),
  });
  const sweeps = sweep.start();
  teardown.add("volume sweep", () => sweeps.stop());
  return {
    content,
    problems: (nodeId: string) => sweep.problems(nodeId),
    unknown: createUnknownVolumeHandlers({
      volumes: store.volumes,
      projects: store.projects,
      nodes,
      timeoutMs: CALL_LIMIT_MS,
    }),
    /** What the deletion of a project removes. */
    part: {
      name: "volumes",
      count: (projectId: string) => store.volumes.count(projectId),
      remove: (projectId: string) => work.deleteAll(projectId),
    },
    resolveMounts: createResolveMounts({ volumes: store.volumes, nodes }),
    handlers: createVolumeHandlers({ store: store.volumes, work, tokens, domain }),
  };
}

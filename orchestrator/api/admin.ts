/** Handlers of the operators' routes: keys, mass kill, counts, unused builds, nodes. */

import type { adminApi } from "../../shared/api/admin.ts";
import type { NodeDetail, NodeRead, nodesApi } from "../../shared/api/nodes/nodes.ts";
import { defined } from "../../shared/defined.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { withDeadline } from "../../shared/program/deadline.ts";
import { findLivingProject, findProject } from "../access/find.ts";
import type { Keys } from "../access/keys.ts";
import type { BuildCleaning } from "../builds/cleanup.ts";
import type { BuildQueue } from "../builds/queue.ts";
import { iso } from "../forms/time.ts";
import type { Ending } from "../lifecycle/ending/kill.ts";
import { type Explain, lacksForMemory, type Wish } from "../lifecycle/start/explain.ts";
import { clockFindings, clockSkewMs } from "../nodes/clock.ts";
import type { NodeView } from "../nodes/entry.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Pools } from "../nodes/pools/pool-targets.ts";
import { allStarts } from "../nodes/telling/starts.ts";
import type { Leases } from "../repairs/leases.ts";
import type { NodeRemoval } from "../repairs/node-removal.ts";
import type { NodeStarts } from "../store/nodes/happening-record.ts";
import type { Store } from "../store/store.ts";
import { DEFAULT_TAG } from "../templates/reference.ts";

export interface AdminDeps {
  readonly store: Store;
  readonly ending: Ending;
  readonly keys: Keys;
  readonly nodes: Nodes;
  readonly builds: BuildQueue;
  readonly cleaning: BuildCleaning;
  readonly pools: Pools;
}

/** The platform has one cluster; its id is a constant. */
const CLUSTER_ID = "00000000-0000-0000-0000-000000000000";
const KILL_AT_ONCE = 16;
const DATABASE_LIMIT_MS = 2_000;
const EVENTS_SHOWN = 50;

export function createAdminHandlers(deps: AdminDeps): Handlers<typeof adminApi> {
  const { store } = deps;

  const project = (reference: string) => findProject(store.projects, reference, "path field 'teamID'");

  return {
    async killTeamSandboxes({ params }) {
      const ids = await store.sandboxes.liveIds((await project(params.teamID)).id);
      const outcome = { killedCount: 0, failedCount: 0 };
      const rest = ids.values();
      const worker = async () => {
        for (const id of rest) {
          try {
            if (await deps.ending.kill(id, "admin")) outcome.killedCount++;
          } catch {
            outcome.failedCount++;
          }
        }
      };
      await Promise.all(Array.from({ length: KILL_AT_ONCE }, worker));
      return outcome;
    },
    runningCounts: async () => Object.fromEntries(await store.sandboxes.runningByProject()),
    async cancelBuilds({ params }) {
      const { cancelled, failed } = await deps.builds.cancelAll((await project(params.teamID)).id);
      return { cancelledCount: cancelled, failedCount: failed };
    },
    async collectBuilds({ body }) {
      const { dryRun = true, keepHours } = body;
      const kept = keepHours === undefined ? {} : { keepHours };
      const { builds, archives } = await deps.cleaning.collect({ dryRun, ...kept });
      return {
        dryRun,
        builds: builds.map(({ id, templateId, status, nodeId, createdAt }) => ({
          buildID: id,
          templateID: templateId,
          status,
          nodeID: nodeId ?? null,
          createdAt: iso(createdAt),
        })),
        files: { count: archives.length, bytes: archives.reduce((sum, { bytes }) => sum + bytes, 0) },
      };
    },
    async promoteTemplate({ body: { templateID, name } }) {
      const template = await store.templates.get(templateID);
      const build = await store.templates.tagged(templateID, DEFAULT_TAG);
      if (template?.kind !== "template" || build === undefined) {
        throw new AppError(
          "template_not_found",
          `template '${templateID}' not found, or it has no build that is ready`,
        );
      }
      if (!(await store.templates.promote(templateID, name))) {
        throw new AppError("bad_request", `body field 'name': '${name}' is the name of a template of the platform`);
      }
      deps.pools.keep(build);
    },
    listTeamKeys: async ({ params }) => deps.keys.list(await project(params.teamID)),
    createTeamKey: async ({ params, body }) => {
      const living = await findLivingProject(store.projects, params.teamID, "path field 'teamID'");
      return deps.keys.create({ ...living, credential: { kind: "admin" } }, body);
    },
    deleteTeamKey: async ({ params }) => {
      await deps.keys.delete(await project(params.teamID), params.apiKeyID);
    },
  };
}

export interface NodeHandlersDeps {
  readonly nodes: Nodes;
  readonly removal: NodeRemoval;
  readonly leases: Leases;
  readonly explain: Explain;
  readonly store: Pick<Store, "projects" | "templates" | "drains" | "nodes" | "nodeEvents" | "nodeStarts">;
}

export function createNodeHandlers(deps: NodeHandlersDeps): Handlers<typeof nodesApi> {
  const { nodes, removal, leases, store } = deps;
  function node(id: string): NodeView {
    const found = nodes.get(id);
    if (found === undefined) throw new AppError("not_found", `node '${id}' not found`);
    return found;
  }

  const detail = (view: NodeView, { builds, starts }: Kept) => ({
    ...toDetail(view, starts?.get(view.id)),
    leaseEndsAt: endOf(leases.forMs(view), view),
    buildCount: builds === undefined ? null : (builds.get(view.id) ?? 0),
  });

  /** Operators read nodes also while the database is away. */
  const orNothing = <T>(read: Promise<T>) =>
    withDeadline(read, DATABASE_LIMIT_MS, () => undefined).catch(() => undefined);

  async function readKept(): Promise<Kept> {
    const [builds, starts] = await Promise.all([
      orNothing(store.nodes.builds()),
      orNothing(store.nodeStarts.ofOthers()),
    ]);
    return { builds, starts };
  }

  async function eventsOf(id: string): Promise<NodeRead["events"]> {
    const events = await orNothing(store.nodeEvents.newest(id, EVENTS_SHOWN));
    return events?.map(({ at, kind, detail }) => ({ at: iso(at), kind, detail: detail ?? null })) ?? null;
  }

  async function wishOf(reference: string | undefined): Promise<Wish> {
    if (reference === undefined) return { labels: {} };
    const { region, nodeLabels } = await findProject(store.projects, reference, "query field 'teamID'");
    return { region, labels: nodeLabels };
  }

  return {
    async listNodes({ query: { clusterID = CLUSTER_ID, explain: templateId, teamID } }) {
      if (clusterID !== CLUSTER_ID) return [];
      if (templateId === undefined && teamID !== undefined)
        throw new AppError("bad_request", "query field 'teamID' is for 'explain': whose sandbox of the template it is");
      const wish = await wishOf(teamID);
      const kept = await readKept();
      const shown = (view: NodeView) => ({ ...detail(view, kept), sandboxStartingCount: view.starting });
      if (templateId === undefined) return nodes.list().map(shown);
      const build = await store.templates.tagged(templateId, DEFAULT_TAG);
      if (build === undefined)
        throw new AppError(
          "template_not_found",
          `template '${templateId}' not found, or it has no build that is ready`,
        );
      const lacksOf = (id: string) => defined({ lacks: lacksForMemory(build, node(id), nodes) });
      return (await deps.explain(build, wish)).map(({ node: { id }, ...verdict }) => ({
        ...shown(node(id)),
        placement:
          verdict.misfit === undefined
            ? { fits: true, score: Math.round(verdict.score * 1000) / 1000, ...lacksOf(id) }
            : { fits: false, reason: verdict.misfit.because, ...lacksOf(id) },
      }));
    },
    getNode: async ({ params }) => {
      const view = node(params.nodeID);
      const [kept, events] = await Promise.all([readKept(), eventsOf(view.id)]);
      return { ...detail(view, kept), cachedBuilds: [...view.images].sort(), events };
    },
    setNodeStatus: async ({ params, body }) => {
      const { nodeID } = params;
      await nodes.setWanted(nodeID, body.status);
      if (body.status === "draining") return;
      // A round of the drain may have set the status back before the drain ended.
      if (await store.drains.end(nodeID)) await nodes.setWanted(nodeID, body.status);
    },
    removeNode: ({ params, query }) => removal.remove(params.nodeID, { force: query.force ?? false }),
  };
}

/** What the database has of nodes; undefined: it does not answer now. */
interface Kept {
  /** Under way, by node. */
  readonly builds: ReadonlyMap<string, number> | undefined;
  /** Of the other orchestrators, by node. */
  readonly starts: ReadonlyMap<string, readonly NodeStarts[]> | undefined;
}

/** @param leaseMs undefined: the node has no lease */
function endOf(leaseMs: number | undefined, { lastHeardAt }: NodeView): string | null {
  return leaseMs === undefined ? null : iso(lastHeardAt + leaseMs);
}

function toDetail(
  view: NodeView,
  others: readonly NodeStarts[] | undefined,
): Omit<NodeDetail, "leaseEndsAt" | "buildCount"> {
  const { facts, load, unreached, ...node } = view;
  const starts = allStarts(view, others);
  return {
    id: node.id,
    serviceInstanceID: facts.serviceInstanceId,
    clusterID: CLUSTER_ID,
    version: facts.version,
    commit: facts.commit,
    status: node.status,
    statusChangedAt: iso(node.statusChangedAt),
    apiURL: facts.apiUrl,
    proxyURL: facts.proxyUrl,
    region: facts.labels["region"] ?? null,
    labels: facts.labels,
    lastHeardAt: iso(node.lastHeardAt),
    clockSkewMs: clockSkewMs(view) ?? null,
    maxSandboxes: facts.maxSandboxes,
    pools: load.pools.map(({ buildId, ready, wanted }) => ({ buildID: buildId, ready, wanted })),
    sandboxCount: load.sandboxCount,
    createSuccesses: starts.succeeded,
    createFails: starts.failed,
    lastErrors: starts.errors.map(({ at, code, message }) => ({ at: iso(at), errorCode: code, message })),
    metrics: {
      allocatedCPU: load.allocatedCpu,
      allocatedMemoryBytes: load.allocatedMemoryBytes,
      cpuPercent: load.cpuPercent,
      cpuCount: load.cpuCount,
      memoryUsedBytes: load.memoryUsedBytes,
      memoryTotalBytes: load.memoryTotalBytes,
      disks: load.disks,
      snapshotStoredBytes: load.stored?.storedBytes ?? 0,
      snapshotQuotaBytes: load.stored?.quotaBytes ?? 0,
      diskPromisedBytes: load.sandboxDisk?.promisedBytes ?? 0,
      diskUsedBytes: load.sandboxDisk?.usedBytes ?? 0,
      diskFreeBytes: load.sandboxDisk?.freeBytes ?? 0,
      diskReserveBytes: load.sandboxDisk?.reserveBytes ?? 0,
      hugePagesTotal: 0,
      hugePagesUsed: 0,
      hugePagesReserved: 0,
      hugePageSizeBytes: 0,
    },
    capabilities: toCapabilities(facts.capabilities),
    findings: [...unreached, ...clockFindings(view), ...(load.findings ?? [])],
    machineInfo: facts.machine,
  };
}

function toCapabilities({ memorySnapshots, lazyPages, detail, ...can }: NodeView["facts"]["capabilities"]) {
  const { kernel = "", criu = "", runc = "", engine: docker = "", ...details } = detail;
  return {
    memorySnapshots,
    lazyPages: lazyPages ?? false,
    ownDisks: can.diskLimit,
    volumes: can.volumes ?? false,
    blobStore: can.blobStore ?? false,
    peers: can.peers ?? false,
    kernel,
    criu,
    runc,
    docker,
    details,
  };
}

/**
 * What an operator decides about a node that refuses this store. Adopt: the store takes over the node's sandboxes, as the node
 * reports them. Discard: the node serves this store, and reconciliation holds what it does not know. Take back: one held
 * snapshot gets its sandbox's record again.
 */

import type { Holdings } from "../../shared/agent-api/routes.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { ENVD_VERSION } from "../../shared/version.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import type { Lineage } from "../store/lineage.ts";
import type { Adopted, AdoptedState } from "../store/sandboxes/adopted.ts";
import type { Store } from "../store/store.ts";

export interface AdoptionDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly lineage: Lineage;
  readonly routes: RoutingTable;
  readonly now: () => number;
  readonly log: Log;
}

interface AdoptionResult {
  readonly imported: number;
  readonly corrected: number;
  readonly unchanged: number;
  /** Snapshots that are no sandbox: their records cannot be made again, so the node holds them. */
  readonly left: readonly string[];
  /** Sandboxes that were started by an agent which kept no record of them: metadata, network options and environment are lost. */
  readonly incomplete: readonly string[];
}

export interface Adoption {
  /** @throws {AppError} not_found, failed_precondition */
  adopt(nodeId: string, projectId?: string): Promise<AdoptionResult>;
  discard(nodeId: string): Promise<void>;
  /** @param reference id of the snapshot or of its sandbox */
  takeBack(nodeId: string, reference: string, projectId?: string): Promise<AdoptionResult>;
  holdings(nodeId: string): Promise<Holdings>;
}

/** Made where a database has no project, as an empty one has none; `scripts/up` makes keys of the project of this name. */
const DEFAULT_PROJECT = "default";

type Kept = Holdings["executions"][number] | Holdings["snapshots"][number];

export function createAdoption({ store, nodes, lineage, routes, now, log }: AdoptionDeps): Adoption {
  function agent(nodeId: string) {
    if (nodes.get(nodeId) === undefined) throw new AppError("not_found", `node '${nodeId}' not found`);
    return nodes.agent(nodeId);
  }

  const holdings = (nodeId: string) => agent(nodeId).holdings({});

  async function projectFor(reference: string | undefined): Promise<string> {
    if (reference === undefined) {
      const oldest = (await store.projects.list())[0] ?? (await store.projects.create(DEFAULT_PROJECT));
      return oldest.id;
    }
    const found = await store.projects.find(reference);
    if (found !== undefined) return found.id;
    throw new AppError("failed_precondition", `project '${reference}' not found`);
  }

  const serve = async (nodeId: string) => {
    await lineage.advance();
    await agent(nodeId).serveStore({ body: lineage.now() });
  };

  /** The executions decide: a sandbox that runs was resumed from its snapshot. */
  async function take(nodeId: string, kept: Holdings, project: string): Promise<AdoptionResult> {
    const counts = { imported: 0, corrected: 0, same: 0 };
    const incomplete: string[] = [];
    const running = new Set(kept.executions.map(({ sandboxId }) => sandboxId));
    const paused = newest(kept.snapshots.filter(({ kind, held }) => kind === "pause" && held === undefined));
    const one = async (facts: Kept, state: AdoptedState) => {
      const { how, record } = await store.adopted.adopt(adoptedOf(facts, { nodeId, projectId: project, state }));
      counts[how]++;
      if (how === "imported" && facts.record === undefined) incomplete.push(record.id);
      if (record.state === "running") routes.add(record);
      if (how !== "same") await store.addEvent(record, { type: "updated", data: { adopted_from_node: nodeId } });
    };
    for (const execution of kept.executions) await one(execution, { is: "running", ...execution });
    for (const snapshot of paused) {
      if (running.has(snapshot.sandboxId)) continue;
      await one(snapshot, {
        is: "paused",
        executionId: snapshot.executionId,
        at: snapshot.takenAt,
        snapshot: { ...snapshot, id: snapshot.snapshotId },
      });
    }
    const checkpoints = kept.snapshots.filter(({ kind, held }) => kind === "checkpoint" && held === undefined);
    const ids = checkpoints.map(({ snapshotId }) => snapshotId);
    const wanted = await store.pausedSandboxes.wanted(ids);
    const left = ids.filter((id) => !wanted.has(id));
    return { imported: counts.imported, corrected: counts.corrected, unchanged: counts.same, left, incomplete };
  }

  return {
    holdings,

    async adopt(nodeId, projectId) {
      const project = await projectFor(projectId);
      const result = await take(nodeId, await holdings(nodeId), project);
      await serve(nodeId);
      log.warn({ nodeId, ...result }, "adopted the sandboxes of a node");
      return result;
    },

    async discard(nodeId) {
      await serve(nodeId);
      log.warn({ nodeId }, "a node serves this database; what it does not know is held, then deleted");
    },

    async takeBack(nodeId, reference, projectId) {
      const kept = await holdings(nodeId);
      const found = kept.snapshots.find(
        ({ snapshotId, sandboxId, held }) =>
          held !== undefined && (snapshotId === reference || sandboxId === reference),
      );
      if (found === undefined) throw new AppError("not_found", `node '${nodeId}' holds no snapshot '${reference}'`);
      if (found.kind === "checkpoint") {
        throw new AppError(
          "failed_precondition",
          `'${found.snapshotId}' is a snapshot that sandboxes start from: its record cannot be made again`,
        );
      }
      const { held: _held, ...snapshot } = found;
      const project = await projectFor(projectId);
      const result = await take(nodeId, { executions: [], snapshots: [snapshot] }, project);
      // The record first: without it the next report would have the snapshot held again.
      await agent(nodeId).takeBackSnapshot({ params: { snapshotId: found.snapshotId } });
      log.info({ nodeId, snapshotId: found.snapshotId, sandboxId: found.sandboxId }, "took a held sandbox back");
      return result;
    },
  };

  function adoptedOf(
    { sandboxId, record, build, resources, projectId: owner, ...facts }: Kept,
    { nodeId, projectId, state }: { readonly nodeId: string; readonly projectId: string; readonly state: AdoptedState },
  ): Adopted {
    const onTimeout = "onTimeout" in facts ? facts.onTimeout : "pause";
    return {
      id: sandboxId,
      nodeId,
      projectId,
      state,
      row: record,
      fallback: {
        id: sandboxId,
        projectId: owner ?? projectId,
        executionId: state.executionId,
        nodeId,
        templateId: build.templateId,
        buildId: build.buildId,
        alias: undefined,
        ...resources,
        envdVersion: ENVD_VERSION,
        metadata: {},
        network: undefined,
        sealedProxyPassword: undefined,
        volumeMounts: [],
        // What its rules were is not known: nothing is better than too much.
        internet: false,
        iam: undefined,
        onTimeout,
        onTimeoutMemory: "onTimeoutMemory" in facts ? facts.onTimeoutMemory : true,
        onResume: "restore",
        autoResume: false,
        timeoutSeconds: FALLBACK_TIMEOUT_S,
        createdAt: now(),
        startedAt: now(),
        endAt: now(),
        seedId: undefined,
      },
    };
  }
}

const FALLBACK_TIMEOUT_S = 300;

function newest(snapshots: Holdings["snapshots"]): Holdings["snapshots"] {
  const last = new Map<string, Holdings["snapshots"][number]>();
  for (const snapshot of snapshots) {
    const other = last.get(snapshot.sandboxId);
    if (other === undefined || other.takenAt < snapshot.takenAt) last.set(snapshot.sandboxId, snapshot);
  }
  return [...last.values()];
}

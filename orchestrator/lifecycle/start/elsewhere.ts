/**
 * Finds the node on which a stored snapshot is started: its own, or where that is lost, gone or draining, another one that fetches it
 * from the blob store first. Fetching changes no record: a node that has a copy which nothing starts from deletes it like any other.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { Resources } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { Demand, PlacementPolicy } from "../../nodes/placement/candidate.ts";
import { choose } from "../../nodes/placement/choose.ts";
import type { BlobRef } from "../../store/storage/blob-refs.ts";
import type { Core } from "../core.ts";
import { notYet, onItsNodeOnly, onItsWay, whereToStart } from "./where.ts";

/** A start from a snapshot. */
interface StoredStart {
  readonly snapshotId: string;
  /** The node that made it. */
  readonly home: string;
  /** The start restores memory. */
  readonly memory: boolean;
  readonly resources: Resources;
  /** The sandbox's policy allows some destination. */
  readonly network: boolean;
  readonly region: string | undefined;
  /** It mounts volumes, which are on its node. */
  readonly hasVolumes: boolean;
}

export interface Elsewhere {
  /** @throws {AppError} no_compatible_node, snapshot_incompatible, cluster_at_capacity; unavailable while it is on its way */
  nodeFor(start: StoredStart): Promise<string>;
}

interface ElsewhereDeps {
  readonly core: Pick<Core, "store" | "nodes" | "timeouts" | "now" | "random" | "log">;
  readonly placement: PlacementPolicy;
  /** For tests. */
  readonly pauseMs?: number;
}

const MIB = 1024 * 1024;
const MAX_NODES = 3;
/** A node answers after some seconds at the latest, with how far it is. */
const CALL_LIMIT_MS = 30_000;
const PAUSE_MS = 250;
const MOST_REMEMBERED = 1_000;

export function createElsewhere({ core, placement, pauseMs = PAUSE_MS }: ElsewhereDeps): Elsewhere {
  const { store, nodes, timeouts, now, log } = core;
  /** Nodes that fetch or have fetched a snapshot, so that the next request asks the same one. */
  const fetchers = new Map<string, string>();

  const pick = (start: StoredStart, excluded: ReadonlyMap<string, string>): string | AppError => {
    const known = fetchers.get(start.snapshotId);
    if (known !== undefined && !excluded.has(known) && nodes.get(known)?.status === "ready") return known;
    const { cpuCount, memoryMB, diskSizeMB } = start.resources;
    const demand: Demand = {
      cpuCount,
      memoryBytes: memoryMB * MIB,
      diskBytes: diskSizeMB * MIB,
      memory: start.memory,
      network: start.network,
      labels: {},
      region: start.region,
      exclude: excluded,
    };
    const choice = choose(nodes.candidates(), demand, placement, core.random);
    if (choice.is === "node") return choice.id;
    const reason = choice.is === "connecting" ? "no node is ready yet" : choice.reason;
    const code =
      choice.is === "full" ? (choice.of === "disk" ? "no_space" : "cluster_at_capacity") : "no_compatible_node";
    return new AppError(
      code,
      `Failed to place sandbox: its node ${start.home} cannot start it, and no other node with the blob store can take it: ${reason}`,
    );
  };

  /** Undefined: the node has the snapshot. Otherwise it is on its way, and the request's time is over. */
  const bring = async (nodeId: string, { snapshotId, memory }: StoredStart, { ref, projectId }: BlobRef) => {
    const until = now() + timeouts.resumeTimeoutMs;
    for (;;) {
      const arrival = await nodes
        .agent(nodeId)
        .fetchSnapshot({ params: { snapshotId }, body: { ref, projectId, memory } }, { timeoutMs: CALL_LIMIT_MS });
      if (arrival.here) return undefined;
      if (now() >= until) return onItsWay(nodeId, arrival);
      await sleep(pauseMs);
    }
  };

  const elsewhere = async (start: StoredStart, stored: BlobRef): Promise<string> => {
    const { snapshotId, home } = start;
    const excluded = new Map([[home, "is the one that cannot start it"], ...unfit(nodes, home)]);
    let failure: AppError | undefined;
    for (let tried = 0; tried < MAX_NODES; tried++) {
      const nodeId = pick(start, excluded);
      if (nodeId instanceof AppError) throw failure ?? nodeId;
      remember(fetchers, snapshotId, nodeId);
      const outcome = await bring(nodeId, start, stored).then(
        (later) => ({ later }),
        (reason: unknown) => ({ error: AppError.from(reason) }),
      );
      if ("error" in outcome) {
        const { error } = outcome;
        if (isFinal(error)) throw error;
        log.warn({ err: error, snapshotId, nodeId, home }, "a node could not fetch a snapshot of another one");
        failure = error;
        excluded.set(nodeId, "could not fetch it");
        fetchers.delete(snapshotId);
        continue;
      }
      if (outcome.later !== undefined) throw outcome.later;
      log.info({ snapshotId, nodeId, home }, "a node has fetched a snapshot of another one");
      return nodeId;
    }
    throw failure ?? new AppError("no_compatible_node", `no node could fetch snapshot ${snapshotId}`);
  };

  return {
    async nodeFor(start) {
      const { home, snapshotId, hasVolumes } = start;
      const status = nodes.get(home)?.status;
      const known = { status, unreached: nodes.unreached(home).length > 0 };
      if (whereToStart(known, true) === "home") return home;
      const refusal = nodes.refused(home);
      // This database may be an older copy: another node must not start what the node has for another one.
      if (refusal !== undefined) throw new AppError("unavailable", refusal);
      const stored = await store.blobRefs.of(snapshotId);
      const bound = hasVolumes ? "the sandbox mounts volumes, which are on that node only" : undefined;
      const where = whereToStart(known, stored !== undefined && bound === undefined);
      if (where === "home") return home;
      if (where === "wait") throw notYet(home);
      if (where === "nowhere" || stored === undefined) throw onItsNodeOnly(home, known, bound);
      return elsewhere(start, stored);
    },
  };
}

/** What no other node changes: the snapshot's files are not in the store, or are damaged there. */
function isFinal({ code }: AppError): boolean {
  return code === "snapshot_files_missing" || code === "snapshot_corrupt";
}

/** Nodes without the blob store, and of another architecture. Of a removed node nothing is known: each node decides for itself. */
function unfit(nodes: Pick<Nodes, "get" | "list">, home: string): [id: string, because: string][] {
  const own = nodes.get(home)?.facts.machine.cpuArchitecture;
  return nodes.list().flatMap(({ id, facts: { capabilities, machine } }): [string, string][] => {
    if (capabilities.blobStore !== true) return [[id, "has no blob store"]];
    const other = own !== undefined && machine.cpuArchitecture !== own;
    return other ? [[id, `has the architecture ${machine.cpuArchitecture}`]] : [];
  });
}

function remember(fetchers: Map<string, string>, snapshotId: string, nodeId: string): void {
  fetchers.delete(snapshotId);
  fetchers.set(snapshotId, nodeId);
  for (const oldest of fetchers.keys()) if (fetchers.size > MOST_REMEMBERED) fetchers.delete(oldest);
}

/**
 * Finds the node on which a stored snapshot is started: its own, or where that is lost, gone or draining, another one that fetches it
 * first: from the blob store, or from its own node while that lives. Fetching changes no record: a node that has a copy which nothing
 * starts from deletes it like any other.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { FetchSnapshotBody, Resources } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import { offers } from "../../nodes/offers.ts";
import type { Demand, PlacementPolicy } from "../../nodes/placement/candidate.ts";
import { choose } from "../../nodes/placement/choose.ts";
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
  /** Labels that the node must have; absent: none. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** The snapshot is the memory of this template. */
  readonly template?: string | undefined;
  /** It mounts volumes, which are on its node. */
  readonly hasVolumes: boolean;
}

export interface Elsewhere {
  /** @throws {AppError} no_compatible_node, snapshot_incompatible, cluster_at_capacity; unavailable while it is on its way */
  nodeFor(start: StoredStart): Promise<string>;
  /** Returns when this node has the snapshot. @throws {AppError} unavailable while it is on its way; what the nodes say */
  bringTo(nodeId: string, start: StoredStart): Promise<void>;
  /** Its own node lives and has lost the snapshot: fetches it again. False: that node cannot. @throws {AppError} as `bringTo` */
  bringBack(start: StoredStart): Promise<boolean>;
  /** Why no other node could take it now; undefined: one could. Nothing is fetched. */
  refusal(start: Omit<StoredStart, "snapshotId">): AppError | undefined;
  /**
   * Another node than its own, with the snapshot on it: for what leaves a node that lives. `later`: it is on its way, and longer
   * than a request. @throws {AppError} as `nodeFor`; also when no node could read it
   */
  away(start: StoredStart): Promise<{ readonly nodeId: string } | { readonly later: AppError }>;
}

interface ElsewhereDeps {
  readonly core: Pick<Core, "store" | "nodes" | "timeouts" | "now" | "random" | "log">;
  readonly placement: PlacementPolicy;
  /** For tests. */
  readonly pauseMs?: number;
}

/** Where the other node reads it. */
type From = Pick<FetchSnapshotBody, "ref" | "projectId" | "peer">;
/** `later`: it is on its way, and the request's time is over. */
type Outcome = { readonly nodeId: string } | { readonly later: AppError } | { readonly failure: AppError };

const MIB = 1024 * 1024;
const MAX_NODES = 3;
/** A node answers after some seconds at the latest, with how far it is. */
const CALL_LIMIT_MS = 30_000;
const PAUSE_MS = 250;
const MOST_REMEMBERED = 1_000;
const VOLUMES = "the sandbox mounts volumes, which are on that node only";

export function createElsewhere({ core, placement, pauseMs = PAUSE_MS }: ElsewhereDeps): Elsewhere {
  const { store, nodes, timeouts, now, log } = core;
  /** Nodes that fetch or have fetched a snapshot, so that the next request asks the same one. */
  const fetchers = new Map<string, string>();

  const pick = (start: StoredStart, excluded: ReadonlyMap<string, string>): string | AppError => {
    const fetcher = fetchers.get(start.snapshotId) ?? "";
    const known = !excluded.has(fetcher) && nodes.get(fetcher)?.status === "ready" ? fetcher : undefined;
    const { cpuCount, memoryMB, diskSizeMB } = start.resources;
    const demand: Omit<Demand, "exclude"> = {
      cpuCount,
      memoryBytes: memoryMB * MIB,
      diskBytes: diskSizeMB * MIB,
      memory: start.memory,
      network: start.network,
      labels: start.labels ?? {},
      region: start.region,
    };
    const among = (exclude: Demand["exclude"]) =>
      choose(nodes.candidates(), { ...demand, exclude }, placement, core.random);
    const others = nodes
      .list()
      .flatMap(({ id }): [string, string][] => (id === known ? [] : [[id, "has not fetched it"]]));
    if (known !== undefined && among(new Map([...others, ...excluded])).is === "node") return known;
    const choice = among(excluded);
    if (choice.is === "node") return choice.id;
    // It has no room for more, and neither has another one: the node itself decides.
    if (known !== undefined) return known;
    const reason = choice.is === "connecting" ? "no node is ready yet" : choice.reason;
    const code =
      choice.is === "full" ? (choice.of === "disk" ? "no_space" : "cluster_at_capacity") : "no_compatible_node";
    return new AppError(
      code,
      `Failed to place sandbox: its node ${start.home} cannot start it, and no other node can take it: ${reason}`,
    );
  };

  /** Its own node describes it. An error: that takes longer than the request. */
  const offered = async ({ snapshotId, home }: StoredStart, until: number): Promise<From | AppError> => {
    for (;;) {
      const { ref, ticket, projectId, ...progress } = await nodes
        .agent(home)
        .offerSnapshot({ params: { snapshotId } }, { timeoutMs: CALL_LIMIT_MS });
      const url = nodes.get(home)?.facts.apiUrl;
      if (ref !== undefined && url !== undefined) return { ref, projectId, peer: { nodeId: home, url, ticket } };
      if (now() >= until) return onItsWay(home, undefined, progress);
      await sleep(pauseMs);
    }
  };

  /** Undefined: the node has the snapshot. An error: it is on its way, and the request's time is over. */
  const bring = async (nodeId: string, { snapshotId, memory, home }: StoredStart, from: From, until: number) => {
    for (;;) {
      const arrival = await nodes
        .agent(nodeId)
        .fetchSnapshot({ params: { snapshotId }, body: { ...from, memory } }, { timeoutMs: CALL_LIMIT_MS });
      if (arrival.here) return undefined;
      if (now() >= until) return onItsWay(from.peer === undefined ? undefined : home, nodeId, arrival);
      await sleep(pauseMs);
    }
  };

  const seek = async (start: StoredStart, stored: From | undefined): Promise<Outcome> => {
    const { snapshotId, home } = start;
    const until = now() + timeouts.resumeTimeoutMs;
    const excluded = new Map([[home, "is the one that cannot start it"], ...unfit(nodes, home, stored !== undefined)]);
    let failure: AppError | undefined;
    // Before the disk is read for nobody.
    const first = pick(start, excluded);
    if (first instanceof AppError) return { failure: first };
    const offer = () => offered(start, until).catch((reason: unknown) => AppError.from(reason));
    const opened = stored ?? (await offer());
    if (opened instanceof AppError) return opened.code === "unavailable" ? { later: opened } : { failure: opened };
    let from: From = opened;
    let mayRenew = stored === undefined;
    for (let tried = 0; tried < MAX_NODES; tried++) {
      const nodeId = tried === 0 ? first : pick(start, excluded);
      if (nodeId instanceof AppError) return { failure: failure ?? nodeId };
      remember(fetchers, snapshotId, nodeId);
      const outcome: { readonly later: AppError | undefined } | { readonly error: AppError } = await bring(
        nodeId,
        start,
        from,
        until,
      ).then(
        (later) => ({ later }),
        (reason: unknown) => ({ error: AppError.from(reason) }),
      );
      if ("error" in outcome) {
        const { error } = outcome;
        if (isFinal(error)) return { failure: error };
        log.warn({ err: error, snapshotId, nodeId, home }, "a node could not fetch a snapshot of another one");
        failure = error;
        // Its own node may have ended the offer, because the files are not what it had described: it describes them once more.
        const anew: From | AppError = mayRenew && error.code === "unavailable" ? await offer() : error;
        mayRenew = false;
        if (!(anew instanceof AppError)) {
          from = anew;
          continue;
        }
        excluded.set(nodeId, "could not fetch it");
        fetchers.delete(snapshotId);
        continue;
      }
      if (outcome.later !== undefined) return { later: outcome.later };
      log.info({ snapshotId, nodeId, home }, "a node has fetched a snapshot of another one");
      return { nodeId };
    }
    return { failure: failure ?? new AppError("no_compatible_node", `no node could fetch snapshot ${snapshotId}`) };
  };

  /** From the blob store, and where what that has is damaged or gone, from its own node while that lives. */
  const seekAnywhere = async (start: StoredStart, stored: From | undefined): Promise<Outcome> => {
    const outcome = await seek(start, stored);
    if (stored === undefined || !("failure" in outcome) || !isFinal(outcome.failure)) return outcome;
    if (!offers(nodes.get(start.home))) return outcome;
    log.warn(
      { err: outcome.failure, snapshotId: start.snapshotId },
      "what the blob store has of a snapshot cannot be used",
    );
    const other = await seek(start, undefined);
    if (!("failure" in other)) return other;
    const { code, message } = other.failure;
    const failure = new AppError(code, `${outcome.failure.message}; from its node: ${message}`, {
      cause: other.failure,
    });
    return { failure };
  };

  const storedRef = async (snapshotId: string): Promise<From | undefined> => {
    const stored = await store.blobRefs.of(snapshotId);
    return stored === undefined ? undefined : { ref: stored.ref, projectId: stored.projectId };
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
      const stored = await storedRef(snapshotId);
      const bound = hasVolumes ? VOLUMES : undefined;
      const isOffered = stored === undefined && offers(nodes.get(home));
      const where = whereToStart(known, (stored !== undefined || isOffered) && bound === undefined);
      if (where === "home") return home;
      if (where === "wait") throw notYet(home);
      if (where === "nowhere") throw onItsNodeOnly(home, known, { bound, template: start.template });
      const outcome = await seekAnywhere(start, stored);
      if ("nodeId" in outcome) return outcome.nodeId;
      if ("later" in outcome) throw outcome.later;
      // A draining node starts what has no other place.
      if (status === "draining") {
        log.warn({ err: outcome.failure, snapshotId, home }, "a draining node starts what no other node can take");
        return home;
      }
      throw outcome.failure;
    },

    async bringTo(nodeId, start) {
      const { home, snapshotId } = start;
      if (home === nodeId) return;
      const until = now() + timeouts.resumeTimeoutMs;
      const stored = await storedRef(snapshotId);
      if (stored === undefined && !offers(nodes.get(home))) throw givesNothing(home);
      const from = stored ?? (await offered(start, until));
      const later = from instanceof AppError ? from : await bring(nodeId, start, from, until);
      if (later !== undefined) throw later;
    },

    async bringBack(start) {
      const { home, snapshotId, hasVolumes } = start;
      // Its volumes are lost too.
      if (hasVolumes || nodes.get(home)?.facts.capabilities.blobStore !== true) return false;
      const stored = await storedRef(snapshotId);
      if (stored === undefined) return false;
      const later = await bring(home, start, stored, now() + timeouts.resumeTimeoutMs);
      if (later !== undefined) throw later;
      log.warn(
        { snapshotId, home },
        "a node has fetched a snapshot of its own from the blob store, because it had lost it",
      );
      return true;
    },

    refusal(start) {
      const { home, hasVolumes } = start;
      if (hasVolumes) return new AppError("no_compatible_node", VOLUMES);
      // What the sandbox has now is in no store yet.
      if (!offers(nodes.get(home))) return givesNothing(home);
      const excluded = new Map([[home, "is the one that it leaves"], ...unfit(nodes, home, false)]);
      const choice = pick({ ...start, snapshotId: "" }, excluded);
      return choice instanceof AppError ? choice : undefined;
    },

    async away(start) {
      const { home, snapshotId, hasVolumes } = start;
      if (hasVolumes) throw new AppError("no_compatible_node", VOLUMES);
      const stored = await storedRef(snapshotId);
      if (stored === undefined && !offers(nodes.get(home))) throw givesNothing(home);
      const outcome = await seekAnywhere(start, stored);
      if ("failure" in outcome) throw outcome.failure;
      return outcome;
    },
  };
}

function givesNothing(home: string): AppError {
  return new AppError(
    "no_compatible_node",
    `node ${home} cannot give its snapshots to other nodes: it does not answer, or has not joined with a certificate`,
  );
}

/** What no other node changes: the snapshot's files are not there, or are damaged. */
function isFinal({ code }: AppError): boolean {
  return code === "snapshot_files_missing" || code === "snapshot_corrupt";
}

/**
 * Nodes that cannot read it, and those of another architecture. Of a removed node nothing is known: each node decides for itself.
 * @param inStore it is read from the blob store; otherwise from its own node
 */
export function unfit(
  nodes: Pick<Nodes, "get" | "list">,
  home: string,
  inStore: boolean,
): [id: string, because: string][] {
  const own = nodes.get(home)?.facts.machine.cpuArchitecture;
  return nodes.list().flatMap(({ id, facts: { capabilities, machine } }): [string, string][] => {
    if (inStore && capabilities.blobStore !== true) return [[id, "has no blob store"]];
    if (!inStore && capabilities.peers !== true)
      return [[id, "reads nothing from other nodes: it has not joined with a certificate"]];
    const other = own !== undefined && machine.cpuArchitecture !== own;
    return other ? [[id, `has the architecture ${machine.cpuArchitecture}`]] : [];
  });
}

function remember(fetchers: Map<string, string>, snapshotId: string, nodeId: string): void {
  fetchers.delete(snapshotId);
  fetchers.set(snapshotId, nodeId);
  for (const oldest of fetchers.keys()) if (fetchers.size > MOST_REMEMBERED) fetchers.delete(oldest);
}

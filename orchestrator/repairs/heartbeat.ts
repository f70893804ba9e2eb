/** Handlers of the nodes' reports: heartbeats, with reconciliation, and exits. */

import { judgeStore, refusalText } from "../../shared/agent-api/judge-store.ts";
import type { ExitReport, Heartbeat, HeartbeatReply, nodeApi, OfferedStore } from "../../shared/agent-api/routes.ts";
import { defined } from "../../shared/defined.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { isPlainToAnother, JOIN } from "../../shared/http/plain-addresses.ts";
import type { Log } from "../../shared/program/log.ts";
import { cleanDetail, type End } from "../../shared/states/end-reason.ts";
import type { Lifecycle } from "../lifecycle/wire.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { ofNodes } from "../nodes/of-nodes.ts";
import type { Pools } from "../nodes/pools/pool-targets.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import type { Lineage } from "../store/lineage.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Store } from "../store/store.ts";
import type { Meter } from "../usage/meter.ts";
import { createBlobPacking } from "./blobs/blob-packing.ts";
import { createStoredRefs } from "./blobs/stored-refs.ts";
import type { GivenUp } from "./given-up.ts";
import type { Leases } from "./leases.ts";
import { type Grace, noSuspicions, type Plan, reconcile, type Suspicions } from "./reconcile.ts";
import { boundTexts } from "./report-texts.ts";
import { createSuspicionMemory } from "./suspicions.ts";

/** What a report changes. */
export interface ReportParts {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly lifecycle: Lifecycle;
  readonly lineage: Lineage;
  readonly routes: RoutingTable;
  readonly pools: Pools;
  readonly metrics: Metrics;
  readonly meter: Meter;
}

export interface ReportsDeps {
  readonly parts: ReportParts;
  /** Records what the node is asked to hold. */
  readonly givenUp: GivenUp;
  readonly grace: Grace;
  /** Whether no other orchestrator can use the database. */
  readonly alone: boolean;
  readonly leases: Leases;
  readonly now: () => number;
  readonly log: Log;
}

/** How often the snapshots of all paused sandboxes are compared: they change rarely, and are many rows. */
const SNAPSHOT_CHECK_MS = 60_000;
const NO_IDS: ReadonlySet<string> = new Set();

export function createReportHandlers(deps: ReportsDeps): Handlers<typeof nodeApi, string> {
  const { leases } = deps;
  const { store, nodes, lineage, routes, pools, metrics, meter } = deps.parts;
  const { ending, nodeLoss, pausing, holding } = deps.parts.lifecycle;
  const packsZstd = createBlobPacking({ nodes, now: deps.now });
  const isKnown = (nodeId: string) => nodes.place(nodeId) !== undefined;
  const suspicions = createSuspicionMemory({
    store: store.nodes,
    alone: deps.alone,
    own: ofNodes<Suspicions>(isKnown),
  });

  async function handleExits(exits: readonly ExitReport[], nodeId: string): Promise<void> {
    await Promise.all(exits.map((exit) => ending.ended({ ...exit, nodeId }, endOf(exit))));
  }

  const checkedAt = ofNodes<number>(isKnown);
  const storedRefs = createStoredRefs({
    refs: store.blobRefs,
    known: ofNodes<ReadonlySet<string>>(isKnown),
    log: deps.log,
  });

  /**
   * Live records of the node, and the records of reported sandboxes and snapshots beyond those. A failed read fails the
   * report and repairs nothing.
   */
  async function recordsFor({ node, executions, snapshots }: Heartbeat, wanted: ReadonlySet<string>) {
    const mine = await store.sandboxes.onNode(node.nodeId);
    const known = new Set(mine.map(({ id }) => id));
    const strays = snapshots.filter(({ snapshotId }) => !wanted.has(snapshotId));
    const reported = new Set([...executions, ...strays].map(({ sandboxId }) => sandboxId));
    const others = await store.sandboxes.getMany([...reported].filter((id) => !known.has(id)));
    return [...mine, ...others];
  }

  /** The checkpoint of a build under way has no record yet: its execution id is the build's id. */
  async function wantedOf({ node: { nodeId }, snapshots }: Heartbeat): Promise<ReadonlySet<string>> {
    if (snapshots.length === 0) return NO_IDS;
    // Nearly all are of the sandboxes that are paused here; only the others are looked for one by one.
    const own = await store.pausedSandboxes.snapshotsOn(nodeId);
    const others = snapshots.filter(({ snapshotId }) => !own.has(snapshotId));
    const ids = others.flatMap(({ snapshotId, executionId }) => [snapshotId, executionId]);
    const known = await store.pausedSandboxes.wanted(ids);
    return new Set(
      snapshots
        .filter(({ snapshotId, executionId }) => own.has(snapshotId) || known.has(snapshotId) || known.has(executionId))
        .map(({ snapshotId }) => snapshotId),
    );
  }

  /** Records sizes that are not known yet. Only logs missing snapshots: a sandbox may still boot from its disk, and its next resume tells the owner. */
  async function checkSnapshots({ node: { nodeId }, snapshots }: Heartbeat): Promise<void> {
    if (deps.now() - (checkedAt.get(nodeId) ?? 0) < SNAPSHOT_CHECK_MS) return;
    checkedAt.set(nodeId, deps.now());
    await store.storage.fillSizes(nodeId, snapshots);
    const there = new Set(snapshots.map(({ snapshotId }) => snapshotId));
    for (const { id, snapshotId } of await store.pausedSandboxes.pausedOn(nodeId)) {
      if (!there.has(snapshotId)) deps.log.error({ nodeId, sandboxId: id, snapshotId }, "snapshot missing on its node");
    }
  }

  async function repair({ pausedByNode, lost }: Pick<Plan, "pausedByNode" | "lost">, nodeId: string): Promise<void> {
    for (const { record, stored } of pausedByNode) {
      deps.log.warn(
        { nodeId, sandboxId: record.id, snapshotId: stored.snapshotId },
        "the node paused a sandbox without a request",
      );
      await pausing.adopt(record, stored);
    }
    for (const record of lost) {
      deps.log.warn({ nodeId, sandboxId: record.id, executionId: record.executionId }, "sandbox lost on its node");
      await ending.ended({ sandboxId: record.id, executionId: record.executionId, nodeId }, { reason: "lost" });
    }
  }

  /** Sent to the node, which decides by it whether it serves this store. */
  async function offer(
    { store, executions, snapshots }: Heartbeat,
    records: readonly SandboxRecord[],
  ): Promise<OfferedStore> {
    const beside = await lineage.beside();
    const own = { ...lineage.now(), ...(beside.length === 0 ? {} : { beside }) };
    const known = new Set(records.map(({ id }) => id));
    const reported = new Set([...executions, ...snapshots].map(({ sandboxId }) => sandboxId));
    const knows = [...reported].filter((id) => known.has(id)).length;
    if (store === undefined || store.storeId !== own.storeId || store.opening === own.opening) return { ...own, knows };
    const reached = await lineage.reached(store.opening);
    return { ...own, knows, ...defined({ reached }) };
  }

  /** Decides as the node does, which has the same facts. */
  function refusalOf({ node: { nodeId }, store, executions, snapshots }: Heartbeat, offered: OfferedStore) {
    const kept = executions.length + snapshots.length;
    const refusal = judgeStore(store, offered, kept);
    if (refusal === undefined) return undefined;
    const text = refusalText(refusal, { nodeId, kept });
    if (nodes.refused(nodeId) === undefined) deps.log.error({ nodeId, refusal, kept }, text);
    return text;
  }

  function unreachedOf(nodeId: string) {
    const unreached = nodes.unreached(nodeId);
    return unreached.length === 0 ? {} : { unreached: [...unreached] };
  }

  function leaseOf(nodeId: string, plan: Plan): Pick<HeartbeatReply, "lease"> {
    const node = nodes.get(nodeId);
    const forMs = node === undefined ? undefined : leases.forMs(node);
    return forMs === undefined ? {} : { lease: { forMs, withoutRecord: [...plan.suspicions.orphans.keys()] } };
  }

  return {
    async heartbeat({ body: given }, { caller }) {
      const body = boundTexts(given);
      const { nodeId } = body.node;
      itself(nodeId, caller);
      refuseInClear(body.node);
      const { executions: reported, snapshots } = body;
      const wanted = await wantedOf(body);
      const records = await recordsFor(body, wanted);
      const store = await offer(body, records);
      const refusal = refusalOf(body, store);
      if (await nodes.heard(body, refusal)) routes.refreshNode(nodeId);
      if (refusal !== undefined) {
        await suspicions.keep(nodeId, noSuspicions);
        return { pools: [], stop: [], endAt: {}, deleteSnapshots: [], store, ...unreachedOf(nodeId) };
      }
      nodeLoss.heard(body);
      await handleExits(body.exits, nodeId);
      const before = await suspicions.of(nodeId);
      const plan = reconcile({ nodeId, reported, snapshots, wanted, records }, before, deps.grace, deps.now());
      await suspicions.keep(nodeId, plan.suspicions, before);
      meter.heard(reported, records);
      await repair(plan, nodeId);
      await holding.heard(body, records);
      await checkSnapshots(body);
      const uploadAgain = await storedRefs.heard(body, wanted);
      const owners = await storedRefs.owners(body);
      if (plan.stop.length > 0) deps.log.warn({ nodeId, executions: plan.stop }, "asked a node to stop executions");
      await deps.givenUp.note(nodeId, plan, records);
      for (const { snapshotId } of plan.removeSnapshots) deps.parts.lifecycle.snapshots.removeSoon(nodeId, snapshotId);
      metrics.repaired("stop", plan.stop.length);
      metrics.repaired("hold", plan.hold.length);
      metrics.repaired("lost", plan.lost.length);
      metrics.repaired("paused_by_node", plan.pausedByNode.length);
      metrics.repaired("delete_snapshot", plan.deleteSnapshots.length);
      metrics.repaired("remove_snapshot", plan.removeSnapshots.length);
      metrics.repaired("end_at", Object.keys(plan.endAt).length);
      return {
        pools: pools.targets(nodeId, nodes.ready()),
        stop: [...plan.stop],
        hold: plan.hold.map(({ executionId }) => executionId),
        endAt: { ...plan.endAt },
        deleteSnapshots: plan.deleteSnapshots.map(({ snapshotId }) => snapshotId),
        ...(uploadAgain.length === 0 ? {} : { uploadAgain }),
        ...defined({ owners }),
        ...(packsZstd() ? { zstdBlobs: true } : {}),
        ...leaseOf(nodeId, plan),
        store,
        ...unreachedOf(nodeId),
      };
    },

    reportExits({ params, body }, { caller }) {
      itself(params.nodeId, caller);
      return handleExits(body.exits, caller);
    },
  };
}

/** @throws {AppError} failed_precondition for an address of another machine without TLS */
function refuseInClear({ nodeId, apiUrl, proxyUrl }: Heartbeat["node"]): void {
  const plain = [apiUrl, proxyUrl].find((url) => isPlainToAnother(url));
  if (plain === undefined) return;
  throw new AppError(
    "failed_precondition",
    `node '${nodeId}' names the address ${plain}, where the orchestrator would send tokens and sandboxes' data to another machine in clear: ${JOIN}`,
  );
}

/** @throws {AppError} forbidden when a node reports about another node. */
function itself(nodeId: string, caller: string): void {
  if (nodeId !== caller)
    throw new AppError("forbidden", `the token belongs to node '${caller}', not to node '${nodeId}'`);
}

/** An agent's `expired` is the sandbox's timeout; `oom` is what agents of earlier versions call `out_of_memory`. */
export function endOf({ reason, exitCode, detail }: Pick<ExitReport, "reason" | "exitCode" | "detail">): End {
  const name = reason === "expired" ? "timeout" : reason === "oom" ? "out_of_memory" : reason;
  return { reason: name, exitCode, detail: detail === undefined ? undefined : cleanDetail(detail) };
}

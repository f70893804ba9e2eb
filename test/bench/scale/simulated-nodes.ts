/**
 * Any number of nodes in one process, for measurements of the orchestrator: they report as agents do, and answer starts, stops
 * and pauses at once. One server stands for all of them, and knows by the token which node is meant.
 */

import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { nodeToken } from "../../../shared/agent-api/joining/node-tokens.ts";
import {
  agentApi,
  type Heartbeat,
  nodeApi,
  type StartRequest,
  type StoredSnapshot,
  type StoreMark,
} from "../../../shared/agent-api/routes.ts";
import { type Connection, connect } from "../../../shared/http/client.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { serve } from "../../../shared/http/serve.ts";
import { createServer } from "../../../shared/http/server.ts";
import { createLog } from "../../../shared/program/log.ts";
import { ENVD_VERSION } from "../../../shared/version.ts";
import { fakeHeartbeat } from "../../support/fakes/fake-heartbeat.ts";

/** How often agents report. */
const REPORT_EVERY_MS = 5_000;

interface Live {
  readonly executionId: string;
  readonly body: StartRequest;
  readonly startedAt: number;
  readonly endAt: number;
}

interface SimulatedNode {
  readonly id: string;
  readonly serviceInstanceId: string;
  readonly live: Map<string, Live>;
  readonly snapshots: Map<string, StoredSnapshot>;
  readonly orchestrator: Connection<typeof nodeApi>;
  served: StoreMark | undefined;
}

export interface SimulatedNodes {
  readonly ids: readonly string[];
  /** Milliseconds of each report since the last call, from the request to the reply. */
  reports(): number[];
  /** Reports of nodes that failed, and of the last one why. */
  readonly failed: { count: number; last: string };
  /** Puts a snapshot on a node, as if it had been taken there. */
  keep(nodeId: string, snapshot: StoredSnapshot): void;
  stop(): Promise<void>;
}

/**
 * Resolves when each node has reported once.
 * @param urls addresses of orchestrators; each node reports to one of them
 */
export async function startSimulatedNodes(
  count: number,
  {
    urls,
    nodeKey,
    machineId,
  }: {
    readonly urls: readonly string[];
    readonly nodeKey: string;
    /** The machine of all of them; absent: one each. */
    readonly machineId?: string;
  },
): Promise<SimulatedNodes> {
  const server = createServer(createLog({ component: "simulated nodes", level: "silent" }));
  const nodes: SimulatedNode[] = [];
  const byToken = new Map<string, SimulatedNode>();
  for (let index = 1; index <= count; index++) {
    const id = `node-${String(index).padStart(4, "0")}`;
    const node: SimulatedNode = {
      id,
      serviceInstanceId: randomUUID(),
      live: new Map(),
      snapshots: new Map(),
      orchestrator: connect(nodeApi, {
        url: urls[index % urls.length] ?? "",
        name: "orchestrator",
        headers: { authorization: `Bearer ${nodeToken(nodeKey, id, "from node")}` },
      }),
      served: undefined,
    };
    nodes.push(node);
    byToken.set(`Bearer ${nodeToken(nodeKey, id, "to node")}`, node);
  }

  const { startExecution, stopExecution, pauseExecution, deleteSnapshot, latestMetrics } = agentApi;
  const contract = { startExecution, stopExecution, pauseExecution, deleteSnapshot, latestMetrics };
  serve<typeof contract, SimulatedNode>(
    server,
    contract,
    {
      startExecution: ({ params: { executionId }, body }, { caller: node }) => {
        const startedAt = Date.now();
        node.live.set(executionId, { executionId, body, startedAt, endAt: body.endAt });
        return {
          executionId,
          sandboxId: body.sandboxId,
          address: "127.0.0.1",
          envdVersion: ENVD_VERSION,
          startedAt,
          warm: true,
          restored: body.origin === undefined ? ("nothing" as const) : ("memory" as const),
        };
      },
      stopExecution: ({ params: { executionId } }, { caller: node }) => void node.live.delete(executionId),
      pauseExecution: ({ params: { executionId }, body }, { caller: node }) => {
        const live = node.live.get(executionId);
        if (live === undefined) throw new AppError("not_found", `node ${node.id} has no execution ${executionId}`);
        const { snapshotId, memory } = body;
        const taken = { snapshotId, sandboxId: live.body.sandboxId, executionId, memory, memoryBytes: 1, diskBytes: 1 };
        node.snapshots.set(snapshotId, { ...taken, kind: "pause", takenAt: Date.now() });
        node.live.delete(executionId);
        return { ...taken, takenAt: Date.now() };
      },
      deleteSnapshot: ({ params: { snapshotId } }, { caller: node }) => void node.snapshots.delete(snapshotId),
      latestMetrics: () => ({}),
    },
    (_access, { headers }) => {
      const node = byToken.get(headers.authorization ?? "");
      if (node === undefined) throw new AppError("unauthorized", "no simulated node has this token");
      return node;
    },
  );
  await server.listen({ host: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`;

  let took: number[] = [];
  const failed = { count: 0, last: "" };

  async function report(node: SimulatedNode): Promise<void> {
    const { id: nodeId, serviceInstanceId, served } = node;
    const facts: Heartbeat = fakeHeartbeat({
      nodeId,
      url,
      serviceInstanceId,
      address: "127.0.0.1",
      options: { facts: { machineId: machineId ?? `machine of ${nodeId}` } },
      live: [...node.live.values()],
      snapshots: [...node.snapshots.values()],
      ...(served === undefined ? {} : { store: served }),
    });
    const began = performance.now();
    const reply = await node.orchestrator.call.heartbeat({ body: facts });
    took.push(performance.now() - began);
    for (const executionId of reply.stop) node.live.delete(executionId);
    for (const snapshotId of reply.deleteSnapshots) node.snapshots.delete(snapshotId);
    const { store } = reply;
    if (store !== undefined) node.served = { storeId: store.storeId, opening: store.opening, mark: store.mark };
  }

  const abort = new AbortController();
  setMaxListeners(0, abort.signal);
  async function reportUntilStopped(node: SimulatedNode, first: number): Promise<void> {
    await delay(first, undefined, { signal: abort.signal }).catch(() => undefined);
    while (!abort.signal.aborted) {
      const next = performance.now() + REPORT_EVERY_MS;
      await report(node).catch((error: unknown) => {
        failed.count += 1;
        failed.last = error instanceof Error ? error.message : String(error);
      });
      await delay(Math.max(0, next - performance.now()), undefined, { signal: abort.signal }).catch(() => undefined);
    }
  }

  for (const node of nodes) await report(node);
  // Spread over the interval, as the reports of machines are that were started at different times.
  const reporting = nodes.map((node, index) => reportUntilStopped(node, (index / count) * REPORT_EVERY_MS));
  return {
    ids: nodes.map(({ id }) => id),
    reports() {
      const given = took;
      took = [];
      return given;
    },
    failed,
    keep: (nodeId, snapshot) => nodes.find(({ id }) => id === nodeId)?.snapshots.set(snapshot.snapshotId, snapshot),
    async stop() {
      abort.abort();
      await Promise.all(reporting);
      await Promise.all(nodes.map(({ orchestrator }) => orchestrator.close()));
      await server.close();
    },
  };
}

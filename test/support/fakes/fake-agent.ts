/** An agent without containers: it serves the real contract over a real socket, with faults that a test orders. */

import { randomUUID } from "node:crypto";
import type { AddressInfo } from "node:net";
import { connectToAny, createOrchestrators } from "../../../agent/joining/orchestrators.ts";
import { createServing } from "../../../agent/serving/serving.ts";
import { identityApi } from "../../../shared/agent-api/joining/identity-shapes.ts";
import {
  agentApi,
  type MetricSample,
  nodeApi,
  type PoolTarget,
  STORE_HEADER,
  type StartRequest,
  type StoredSnapshot,
  type StoreMark,
} from "../../../shared/agent-api/routes.ts";
import { AppError, isError } from "../../../shared/http/errors.ts";
import { serve } from "../../../shared/http/serve.ts";
import { createServer } from "../../../shared/http/server.ts";
import { createLog } from "../../../shared/program/log.ts";
import { ENVD_VERSION } from "../../../shared/version.ts";
import { createFakeBuilds, type FakeBuilds, fetchFile } from "./fake-agent-builds.ts";
import { noPeers, peerHandlers } from "./fake-agent-peers.ts";
import type { FakeAgent, FakeAgentOptions, SnapshotRequest, Started } from "./fake-agent-shapes.ts";
import { fakeHeartbeat } from "./fake-heartbeat.ts";
import { fakeHoldings } from "./fake-holdings.ts";
import { createFakeReports } from "./fake-reports.ts";
import { createFakeVolumes } from "./fake-volumes.ts";

export async function startFakeAgent(options: FakeAgentOptions): Promise<FakeAgent> {
  const { nodeToken, nodeId = `node-${randomUUID().slice(0, 8)}`, address = "127.0.0.1" } = options;
  const log = createLog({ component: "fake-agent", level: "silent" });
  const { peering } = options;
  const server = createServer(log, { door: peering?.apiDoor });
  const live = new Map<string, Started>();
  const ended = new Set<string>();
  const snapshots = new Map<string, StoredSnapshot>();
  const memorySnapshots = options.facts?.capabilities?.memorySnapshots ?? true;
  let pools: readonly PoolTarget[] = [];
  let served: StoreMark | undefined;
  const serving = createServing({
    nodeId,
    store: { get: () => served, set: (mark) => void (served = mark) },
    kept: () => live.size + snapshots.size,
    // At once: the orchestrator may wait for this node's answer before it replies to the report under way.
    ask: () => void reports.now().catch(() => undefined),
    log,
  });

  function store(kind: StoredSnapshot["kind"], { executionId, snapshotId, memory }: SnapshotRequest): void {
    const started = known(executionId);
    if (memory && !memorySnapshots) throw new AppError("memory_snapshots_unavailable", "no CRIU: use memory: false");
    snapshots.set(snapshotId, {
      snapshotId,
      kind,
      sandboxId: started.body.sandboxId,
      executionId,
      memory,
      memoryBytes: memory ? agent.sizes.memoryBytes : 0,
      diskBytes: agent.sizes.diskBytes,
      takenAt: Date.now(),
    });
  }

  function taken(snapshotId: string) {
    const stored = snapshots.get(snapshotId);
    if (stored === undefined) throw new AppError("internal", "the snapshot was not taken");
    const { kind, ...rest } = stored;
    return { ...rest, ...(kind === "checkpoint" ? { image: `snapshot:${snapshotId}` } : {}) };
  }

  function known(executionId: string): Started {
    const started = live.get(executionId);
    if (started === undefined) throw new AppError("not_found", "no such execution");
    return started;
  }

  /** Returns what a start restores; throws as a node does. */
  function restored({ origin }: StartRequest): "nothing" | "memory" | "disk" {
    if (origin === undefined) return "nothing";
    const stored = snapshots.get(origin.snapshotId);
    if (stored === undefined) throw new AppError("snapshot_files_missing", "the files of the snapshot are missing");
    return origin.memory && stored.memory ? "memory" : "disk";
  }
  const serviceInstanceId = randomUUID();
  const building = createFakeBuilds({
    snapshots,
    files(templateId, hash) {
      const path = `/internal/templates/${templateId}/files/${hash}`;
      const fetchFrom = (url: string) => fetchFile(`${url}${path}`, nodeToken);
      return orchestrators.ask(fetchFrom, () => true);
    },
  });

  const authenticate = ({ headers }: { readonly headers: { readonly authorization?: string | undefined } }) => {
    if (headers.authorization !== `Bearer ${options.orchestratorToken}`)
      throw new AppError("unauthorized", "wrong token");
  };
  const volumes = createFakeVolumes(server, authenticate);
  const identity = () => ({ nodeId, serviceInstanceId });
  serve(server, identityApi, { identity }, (_access, request) => authenticate(request));
  serve(
    server,
    agentApi,
    {
      async startExecution({ params, body }) {
        const { executionId } = params;
        const { egress, endAt } = body;
        const start: Started = { executionId, body, egress, endAt, startedAt: Date.now() };
        agent.starts.push(start);
        const run = () => {
          if (ended.has(executionId)) throw new AppError("conflict", "the execution was stopped");
          const replaced = body.origin?.replaces;
          if (replaced !== undefined && !live.delete(replaced))
            throw new AppError("sandbox_not_found", `execution ${replaced} does not run here`);
          live.set(executionId, start);
        };
        const back = restored(body);
        if (!live.has(executionId)) await agent.onStart(start, run);
        return {
          executionId,
          sandboxId: body.sandboxId,
          address,
          envdVersion: ENVD_VERSION,
          startedAt: start.startedAt,
          warm: true,
          restored: back,
        };
      },
      async stopExecution({ params }) {
        agent.stops.push(params.executionId);
        ended.add(params.executionId);
        await agent.onStop(params.executionId);
        live.delete(params.executionId);
      },
      async replaceEgress({ params, body }) {
        const started = known(params.executionId);
        await agent.onEgress(body, () => void (started.egress = body));
        return { trust: agent.trust };
      },
      checkNetwork({ params, query }) {
        const { egress } = known(params.executionId);
        agent.checks.push(query);
        return agent.onCheck(egress);
      },
      networkLog({ query }) {
        const { entries, suppressed } = agent.networkLog;
        const { cursor, limit } = query;
        const from = entries.filter(({ at }) => at >= (cursor ?? 0));
        return { entries: cursor === undefined ? from.slice(-limit) : from.slice(0, limit), suppressed };
      },
      ...building.handlers,
      ...volumes.handlers,
      async pauseExecution({ params: { executionId }, body }) {
        const take = () => {
          store("pause", { executionId, ...body });
          live.delete(executionId);
        };
        if (!snapshots.has(body.snapshotId)) await agent.onPause({ executionId, ...body }, take);
        return taken(body.snapshotId);
      },
      async checkpointExecution({ params: { executionId }, body }) {
        const take = () => store("checkpoint", { executionId, ...body });
        if (!snapshots.has(body.snapshotId)) await agent.onCheckpoint({ executionId, ...body }, take);
        return taken(body.snapshotId);
      },
      async deleteSnapshot({ params: { snapshotId } }) {
        await agent.onRemove(snapshotId);
        if (snapshots.delete(snapshotId)) agent.removed.push(snapshotId);
      },
      collectBlobs: ({ body }) => void agent.collections.push(body),
      ...peerHandlers(() => agent),
      listGarbage: () => agent.onGarbage(),
      examine: () => agent.onExamine(),
      holdings: () => fakeHoldings({ serving, live, snapshots, starts: agent.starts, address }),
      serveStore: ({ body }) => serving.adopt(body),
      takeBackSnapshot: () => undefined,
      updateExecution({ params, body }) {
        known(params.executionId).endAt = body.endAt;
      },
      executionMetrics: ({ query }) =>
        agent.metrics.filter(({ at }) => at >= (query.start ?? 0) && at <= (query.end ?? Number.MAX_SAFE_INTEGER)),
      latestMetrics: ({ body }) => {
        const last = agent.metrics.at(-1);
        const found = body.executionIds.filter((id) => live.has(id) && last !== undefined);
        return Object.fromEntries(found.map((id) => [id, last as MetricSample]));
      },
      executionLogs: ({ query }) => agent.logs.slice(0, query.limit),
    },
    async (_access, request, route) => {
      authenticate(request);
      if (route.method === "GET" || route.path === "/v1/store" || route.path === "/v1/metrics") return;
      const name = request.headers[STORE_HEADER];
      await serving.admit(typeof name === "string" ? name : undefined);
    },
  );
  await server.listen({ host: "127.0.0.1", port: 0 });
  const url = `${peering === undefined ? "http" : "https"}://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
  const orchestrators = createOrchestrators(options.orchestratorUrl, log);
  const orchestrator = connectToAny(nodeApi, {
    orchestrators,
    name: "orchestrator",
    headers: { authorization: `Bearer ${nodeToken}` },
    meeting: peering?.meeting,
  });

  const report = () =>
    fakeHeartbeat({
      nodeId,
      url,
      serviceInstanceId,
      address,
      options: {
        ...options,
        facts: { ...options.facts, ...agent.facts },
        load: { ...options.load, ...agent.load },
      },
      live: [...live.values()],
      snapshots: [...snapshots.values()],
      store: serving.served,
    });

  const reports = createFakeReports(async () => {
    // The agent sends the report once more when the kept connection led to an orchestrator that has restarted.
    const send = () => orchestrator.call.heartbeat({ body: report() });
    const reply = await send().catch((error: unknown) => {
      if (isError(error, "node_unreachable")) return send();
      throw error;
    });
    agent.replies.push(reply);
    if (!serving.heard(reply.store)) return reply;
    pools = reply.pools;
    for (const executionId of reply.stop) {
      agent.stopsByReply.push(executionId);
      live.delete(executionId);
    }
    for (const executionId of reply.hold ?? []) {
      agent.holds.push(executionId);
      live.delete(executionId);
    }
    for (const snapshotId of reply.deleteSnapshots) {
      agent.holds.push(snapshotId);
      if (snapshots.delete(snapshotId)) agent.removed.push(snapshotId);
    }
    for (const [executionId, endAt] of Object.entries(reply.endAt)) {
      const started = live.get(executionId);
      if (started !== undefined) started.endAt = endAt;
    }
    return reply;
  });

  // The same object for the test and the handlers: the handlers see what a test replaces.
  const agent: FakeAgent = Object.assign(building.state, {
    nodeId,
    tokens: options,
    url,
    live,
    snapshots,
    volumes: volumes.state,
    removed: [],
    starts: [],
    stops: [],
    stopsByReply: [],
    holds: [],
    serving,
    replies: [],
    pools: () => pools,
    onStart: (_start, run) => run(),
    onStop: () => undefined,
    onPause: (_request, take) => take(),
    onCheckpoint: (_request, take) => take(),
    onRemove: () => undefined,
    collections: [],
    ...noPeers(),
    onGarbage: () => ({ memory: [], images: [], buildImages: [], layers: [] }),
    onExamine: () => ({ ok: true, at: new Date().toISOString(), instance: "", checks: [] }),
    sizes: { memoryBytes: 1, diskBytes: 1 },
    onEgress: (_policy, set) => set(),
    trust: "applied",
    onCheck: () => ({ verdict: "allow", rule: "default", reason: "nothing denies it", dial: "address", addresses: [] }),
    checks: [],
    networkLog: { entries: [], suppressed: 0 },
    checkpointByItself: (executionId, snapshotId) => store("checkpoint", { executionId, snapshotId, memory: true }),
    pauseByItself(executionId, snapshotId = randomUUID()) {
      store("pause", { executionId, snapshotId, memory: true });
      live.delete(executionId);
      return snapshotId;
    },
    metrics: [],
    logs: [],
    load: {},
    beat: () => reports.next(),
    async reportExit(executionId, reason, more = {}) {
      const started = live.get(executionId);
      live.delete(executionId);
      const sandboxId = started?.body.sandboxId ?? "unknown";
      await orchestrator.call.reportExits({
        params: { nodeId },
        body: { exits: [{ executionId, sandboxId, reason, at: Date.now(), ...more }] },
      });
    },
    async stop() {
      reports.stop();
      await server.close();
      await orchestrator.close();
      await volumes.stop();
    },
  } satisfies Omit<FakeAgent, keyof FakeBuilds>);
  await agent.beat();
  reports.start(options.heartbeatMs ?? 1_000);
  return agent;
}

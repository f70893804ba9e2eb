/** Constructs the reports to the orchestrator, and later the metrics and the API, over the parts of the other folders. */

import { findingText } from "../../shared/program/finding.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { listGarbage } from "../api/garbage.ts";
import { describeHoldings } from "../api/holdings.ts";
import { identify } from "../api/identity.ts";
import { createInstruments } from "../api/prometheus.ts";
import { createReport } from "../api/report.ts";
import { type Api, type StartApiDeps, startApi } from "../api/start-api.ts";
import { reportedSnapshots, type StartReportDeps, startReport } from "../api/start-report.ts";
import type { AgentConfig } from "../config.ts";
import type { EngineWatch } from "../containers/engine-watch.ts";
import type { AgentDeps } from "../deps.ts";
import type { DiskAccount } from "../disk/account.ts";
import type { DiskReserve } from "../disk/reserve.ts";
import type { EgressProcess } from "../egress-supervisor/process.ts";
import type { CapabilityWatch } from "../host/capability-watch.ts";
import type { LimitWatch } from "../host/limit-watch.ts";
import type { Reach } from "../network/reach/reach.ts";
import type { Slots } from "../network/slots.ts";
import type { Values } from "../placeholders/values.ts";
import type { NodeProxy } from "../proxy/node-proxy.ts";
import type { Disposal } from "../sandboxes/disposal.ts";
import type { LiveSet } from "../sandboxes/live-set.ts";
import type { MemoryKills } from "../sandboxes/memory-kills.ts";
import type { Pool } from "../sandboxes/pool/pool.ts";
import type { UsageSampling } from "../sandboxes/usage.ts";
import { createServing } from "../serving/serving.ts";
import type { Admission } from "../snapshots/take/admission.ts";
import type { Stores } from "../store/stores.ts";
import { createVolumeFiles } from "../volumes/volume-files.ts";

interface MeasuredParts {
  readonly live: Pick<LiveSet, "running" | "starting">;
  readonly disk: Pick<DiskReserve, "isHeld" | "seen">;
  readonly diskAccount: Pick<DiskAccount, "load">;
  readonly admission: Pick<Admission, "used">;
  readonly pool: Pick<Pool, "load">;
  readonly slots: Pick<Slots, "taken">;
  readonly values: Pick<Values, "results">;
  readonly disposal: Pick<Disposal, "pending">;
  readonly memoryKills: Pick<MemoryKills, "total">;
  readonly limits: Pick<LimitWatch, "seen">;
  readonly reach: Pick<Reach, "ways" | "findings">;
  readonly capabilities: Pick<CapabilityWatch, "findings">;
}

interface ApiParts
  extends Pick<StartApiDeps, "taker" | "builds" | "logs" | "replaceEgress" | "instruments">,
    Pick<StartReportDeps, "live" | "sandboxes" | "pool" | "snapshots" | "admission" | "diskAccount" | "holding"> {
  readonly disk: StartReportDeps["disk"] & Pick<DiskReserve, "refusal">;
  readonly stores: Stores;
  readonly usage: Pick<UsageSampling, "latest" | "use">;
  readonly egressProcess: EgressProcess;
  readonly engine: Pick<EngineWatch, "connected">;
  readonly reach: Pick<Reach, "findings" | "refuses" | "problemOf">;
  readonly proxy: Pick<NodeProxy, "url">;
  readonly capabilities: Pick<CapabilityWatch, "now" | "findings">;
}

export function createApiParts(config: AgentConfig, deps: AgentDeps, teardown: Teardown) {
  const { nodeId } = config;
  const { now, log, diskWork } = deps;
  const report = createReport({ nodeId, everyMs: config.heartbeatEveryMs, now, log });

  const volumeFiles = createVolumeFiles({ volumes: deps.volumes, program: deps.volumeProgram });

  const measure = (parts: MeasuredParts) =>
    createInstruments({
      nodeId,
      running: () => parts.live.running().length,
      starting: () => parts.live.starting(),
      held: () => parts.live.running().filter(({ executionId }) => parts.disk.isHeld(executionId)).length,
      disks: () => parts.disk.seen(),
      sandboxDisk: () => parts.diskAccount.load(),
      diskWork,
      stored: () => parts.admission.used(),
      pools: () => parts.pool.load(),
      slots: () => parts.slots.taken,
      placeholderUses: () => parts.values.results(),
      pendingRemovals: () => parts.disposal.pending,
      memoryKills: () => parts.memoryKills.total,
      hostLimits: () => parts.limits.seen(),
      ways: () => parts.reach.ways(),
      findings: () => [...parts.capabilities.findings(), ...parts.reach.findings()],
      volumes: () => deps.volumes.list(),
      volumeRequests: () => volumeFiles.open,
      orchestratorReached: () => report.reached,
    });

  /** Requests wait until `open`. */
  const start = async (parts: ApiParts): Promise<Api> => {
    const { stores, egressProcess, engine, proxy, reach, disk } = parts;
    const { live } = parts;
    const running = () => [...live.running(), ...live.leaving()];
    const serving = createServing({
      nodeId,
      store: stores.served,
      kept: () => running().length + reportedSnapshots({ snapshots: parts.snapshots, stores }).length,
      ask: () => report.soon(),
      log,
    });
    const api = await startApi(
      {
        ...parts,
        serving,
        holdings: () => describeHoldings({ running, stores, serving }),
        config,
        egress: egressProcess,
        samples: stores.samples,
        networkLog: stores.networkLog,
        volumes: deps.volumes,
        volumeFiles,
        refusal: () => disk.refusal(),
        listGarbage: () => listGarbage({ ...deps, stores, nodeId, budgetBytes: config.buildCacheMb * 1024 ** 2 }),
        checks: () => ({
          engine: engine.connected ? undefined : "the Docker daemon does not answer",
          "egress process": egressProcess.problem,
          network: reach.findings().map(findingText).join(" | ") || undefined,
          orchestrator: report.reached ? undefined : notReached(report.problem),
          store: serving.refusal,
        }),
        log,
      },
      teardown,
    );
    const identity = identify(config, deps, { apiUrl: api.url, proxyUrl: proxy.url });
    startReport({ ...deps, ...parts, config, report, identity, serving }, teardown);
    return api;
  };

  return { report, measure, start };
}

function notReached(problem: string | undefined): string {
  return problem === undefined ? "the orchestrator does not answer" : `the orchestrator takes no reports: ${problem}`;
}

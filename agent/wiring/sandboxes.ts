/** Constructs the live set with its containers and what watches and removes them, then the starts and stops that change it. */

import type { Teardown } from "../../shared/program/teardown.ts";
import type { Instruments } from "../api/prometheus.ts";
import type { Report } from "../api/report.ts";
import type { AgentConfig } from "../config.ts";
import type { AgentDeps } from "../deps.ts";
import type { DiskReserve } from "../disk/reserve.ts";
import type { LimitWatch } from "../host/limit-watch.ts";
import type { Gate } from "../network/gate.ts";
import type { Reach } from "../network/reach/reach.ts";
import type { Slots } from "../network/slots.ts";
import type { NodeProxy } from "../proxy/node-proxy.ts";
import type { RecoveryResult } from "../recovery/apply.ts";
import { createDisposal } from "../sandboxes/disposal.ts";
import { createExpiry } from "../sandboxes/expiry.ts";
import { createLiveSet } from "../sandboxes/live-set.ts";
import { startSandboxLogs } from "../sandboxes/logs.ts";
import { createMemoryKills } from "../sandboxes/memory-kills.ts";
import { startContainerSource } from "../sandboxes/pool/container-source.ts";
import { createReplaceEgress } from "../sandboxes/replace-egress.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import { createSandboxes } from "../sandboxes/sandboxes.ts";
import { createStart, type StartDeps } from "../sandboxes/start.ts";
import { createUsageSampling } from "../sandboxes/usage.ts";
import { endExpired } from "../snapshots/take/end-expired.ts";
import type { SnapshotTaker } from "../snapshots/take/snapshot-taker.ts";
import type { Stores } from "../store/stores.ts";

interface SandboxSources {
  readonly stores: Stores;
  readonly found: RecoveryResult;
  readonly slots: Slots;
  readonly gate: Gate;
  readonly report: Report;
}

interface Starts {
  readonly sources: Omit<StartDeps["sources"], "pool" | "boot" | "pooledMemory">;
  readonly mutex: StartDeps["mutex"];
  readonly startCommand: StartDeps["startCommand"];
  readonly rescue: (sandbox: Sandbox) => Promise<boolean>;
  readonly proxy: Pick<NodeProxy, "close">;
  readonly disk: Pick<DiskReserve, "refusal">;
  readonly limits: Pick<LimitWatch, "refusal">;
  readonly reach: Pick<Reach, "refusal">;
  readonly instruments: Pick<Instruments, "exited">;
}

/** The live set holds the sandboxes that an earlier agent process left running. Nothing starts or ends before `begin`. */
export function createSandboxParts(config: AgentConfig, deps: AgentDeps, base: SandboxSources, teardown: Teardown) {
  const { now, log, containers, annotations } = deps;
  const { stores, found, slots, gate, report } = base;
  const disposal = createDisposal({ containers, slots, gate, annotations, store: stores.containers, log });
  teardown.add("removals", () => disposal.settled());
  const source = startContainerSource(config, deps, { ...base, disposal }, teardown);
  const live = createLiveSet();
  for (const sandbox of found.sandboxes) live.add(sandbox);
  const { running } = live;
  const memoryKills = createMemoryKills({ since: now(), log });
  const { usageEveryMs: everyMs } = config;
  const usage = createUsageSampling({ ...deps, store: stores.samples, everyMs, running, memoryKills });
  const expiry = createExpiry({ lastContact: () => report.lastContact, graceMs: config.endGraceMs, running, now, log });
  const replaceEgress = createReplaceEgress({ ...deps, gate });

  const begin = (starts: Starts) => {
    const logs = startSandboxLogs({ ...deps, store: stores.logs, running });
    teardown.add("logs", () => logs.stop());
    teardown.add("usage samples", () => usage.stop());
    usage.begin();
    const sandboxes = createSandboxes({
      live,
      start: createStart({ ...starts, sources: { ...source.sources, ...starts.sources }, stores }),
      store: stores.executions,
      recordOf: (snapshotId) => stores.snapshots.get(snapshotId)?.record,
      closeStreams: (executionId) => starts.proxy.close(executionId),
      beforeEnd: (sandbox) => {
        memoryKills.look(sandbox);
        return logs.last(sandbox);
      },
      rescue: starts.rescue,
      onStart: (sandbox) => usage.started(sandbox),
      onChange: () => {
        expiry.changed();
        report.soon();
      },
      onExit: (reason, sandbox) => {
        if (reason === "out_of_memory") logs.outOfMemory(sandbox);
        starts.instruments.exited(reason);
        report.exited();
      },
      maxSandboxes: config.maxSandboxes,
      refusal: ({ egress }) => starts.disk.refusal() ?? starts.limits.refusal() ?? starts.reach.refusal(egress),
      startLimitMs: config.startLimitMs,
      disposal,
      now,
      log,
    });
    /** Ends or pauses expired sandboxes when the orchestrator does not. */
    const startExpiry = (taker: SnapshotTaker) => {
      teardown.add("expiry", () => expiry.stop());
      expiry.begin((executionId) => endExpired(executionId, { sandboxes, taker, log }));
    };
    return { sandboxes, logs, startExpiry };
  };
  const { pool, semaphore, boot, makePooled } = source;
  return { pool, semaphore, boot, makePooled, live, usage, memoryKills, disposal, replaceEgress, begin };
}

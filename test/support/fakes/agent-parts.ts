/** The agent's live set on a fake machine, put together as app.ts does it, without servers and loops. */

import { onTestFinished } from "vitest";
import { createLease, type Lease } from "../../../agent/lease/lease.ts";
import { createGate, type Gate } from "../../../agent/network/gate.ts";
import { createSlots } from "../../../agent/network/slots.ts";
import type { RecoveryResult } from "../../../agent/recovery/apply.ts";
import { boot } from "../../../agent/sandboxes/boot.ts";
import { createDisposal } from "../../../agent/sandboxes/disposal.ts";
import { createLiveSet } from "../../../agent/sandboxes/live-set.ts";
import { createPool } from "../../../agent/sandboxes/pool/pool.ts";
import { createPoolSources } from "../../../agent/sandboxes/pool/pool-or-boot.ts";
import { createTurns } from "../../../agent/sandboxes/pool/turns.ts";
import { guestOf } from "../../../agent/sandboxes/sandbox.ts";
import { createSandboxes } from "../../../agent/sandboxes/sandboxes.ts";
import { createStart } from "../../../agent/sandboxes/start.ts";
import { type SnapshotParts, startSnapshots } from "../../../agent/snapshots/start-snapshots.ts";
import type { Snapshots } from "../../../agent/snapshots/store/snapshots.ts";
import { createSnapshotTaker, type SnapshotTaker } from "../../../agent/snapshots/take/snapshot-taker.ts";
import { openStores, type Stores } from "../../../agent/store/stores.ts";
import type { PoolTarget, StartRequest } from "../../../shared/agent-api/routes.ts";
import type { AppError } from "../../../shared/http/errors.ts";
import { newSandboxId } from "../../../shared/ids.ts";
import { OPEN } from "../../../shared/policy/egress-policy.ts";
import { createLog } from "../../../shared/program/log.ts";
import { createSemaphore, shareOf } from "../../../shared/program/semaphore.ts";
import { Teardown } from "../../../shared/program/teardown.ts";
import { testSeal } from "../store/test-seal.ts";
import { type FakeEngine, fakeEngine } from "./fake-engine.ts";
import { able, roomyDisk } from "./fake-machine.ts";
import { noBlobStore } from "./no-blobs.ts";
import { noPlaceholders, noValues } from "./no-values.ts";

const log = createLog({ component: "test", level: "silent" });

export const build = { templateId: "base", buildId: "b1", image: "svc/base" };
export const resources = { cpuCount: 2, memoryMB: 512, diskSizeMB: 1024 };

export function startRequest(more: Partial<StartRequest> = {}): StartRequest {
  return {
    sandboxId: newSandboxId(),
    build,
    resources,
    egress: OPEN,
    envs: {},
    accessToken: "a".repeat(32),
    endAt: 2 ** 50,
    onTimeout: "kill",
    ...more,
  };
}

/** Only a test that sets a limit of its own is about it. */
const START_LIMIT = { startLimitMs: 60_000 };

export interface Parts {
  readonly sandboxes: ReturnType<typeof createSandboxes>;
  readonly gate: Gate;
  readonly lease: Lease;
  readonly taker: SnapshotTaker;
  readonly snapshots: Snapshots;
  /** What keeps and restores snapshots. */
  readonly stored: SnapshotParts;
  readonly frozen: SnapshotParts["frozen"];
  readonly copy: SnapshotParts["copy"];
  readonly pool: ReturnType<typeof createPool>;
  readonly stores: Stores;
  /** Exits, starts and stream closings, in order. */
  readonly told: string[];
  /** Resolves when all background work is done. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export interface PartsOptions {
  readonly targets?: readonly PoolTarget[];
  readonly maxSandboxes?: number;
  readonly coldAtOnce?: number;
  readonly queueMs?: number;
  /** Bytes that the pool may take; absent: as many as it wants. */
  readonly poolBytes?: number;
  readonly refillsAtOnce?: number;
  /** The path of the SQLite file; without it the database is in memory. */
  readonly databasePath?: string;
  readonly frozenSeconds?: number;
  readonly restoreLimitMs?: number;
  /** A node that can neither store nor restore memory; undefined: it can. */
  readonly memoryRefusal?: () => AppError | undefined;
  /** Whether the kernel lets CRIU restore page by page, which it does from `lazyPagesMb` on. */
  readonly lazyPages?: boolean;
  readonly lazyPagesMb?: number;
  readonly projectSnapshotQuotaMb?: number;
  readonly disk?: Partial<typeof roomyDisk>;
  readonly limits?: { readonly startLimitMs: number };
  /** Time of the last start that somebody waits for; infinite while one is under way. */
  readonly lastForeground?: () => number;
  /** Milliseconds since the start of the kernel. */
  readonly sinceBoot?: () => number;
  /** Executions that are frozen for the node's disk. */
  readonly isHeld?: (executionId: string) => boolean;
  /** Whether the lease freezes at all. */
  readonly freezes?: boolean;
  /** The result of the recovery from the previous agent. */
  readonly before?: RecoveryResult;
}

function settingsOf({ frozenSeconds = 3_600, projectSnapshotQuotaMb = 0, lazyPagesMb = 1_000 }: PartsOptions) {
  return {
    holdHours: 24,
    frozenSeconds,
    frozenReservedMb: 0,
    lazyPagesMb,
    projectSnapshotQuotaMb,
    blobStorePaused: false,
    poolMemoryPercent: 10,
    poolReservedMb: 0,
    rewindCopySeconds: 0,
  };
}

function leaseOptions({ sinceBoot = () => performance.now(), isHeld = () => false, freezes = true }: PartsOptions) {
  return { sinceBoot, isHeld, freezes };
}

/** Both lines have the limit that a test sets. Otherwise a restore waits for as long as a slow machine takes. */
function turnsOf({ coldAtOnce = 4, queueMs }: PartsOptions) {
  const now = Date.now;
  return {
    boots: createTurns({ semaphore: createSemaphore(coldAtOnce), queueMs: queueMs ?? 1_000, now }),
    restores: createTurns({ semaphore: createSemaphore(4, shareOf(4)), queueMs: queueMs ?? 60_000, now }),
  };
}

export function agentParts(engine: FakeEngine, options: PartsOptions = {}): Parts {
  const stores = openStores(options.databasePath ?? ":memory:", testSeal);
  const own = engine.machine();
  const machine = { ...own, memory: { ...own.memory, restoreLimitMs: options.restoreLimitMs } };
  const told: string[] = [];
  const now = Date.now;
  const turns = turnsOf(options);
  const guests = (options.before?.sandboxes ?? []).map(guestOf);
  const egress = machine.egress.start({
    sandboxes: guests,
    placeholders: noPlaceholders,
    onDecisions: () => undefined,
  });
  const gate = createGate({ firewall: machine.network.firewall, egress, values: noValues, guests, log });
  const common = { ...machine, stores, gate, now, log };
  const slots = createSlots({ ...machine.network, log, ahead: 0, restMs: 1 });
  const disposal = createDisposal({ ...common, slots });
  const bootDeps = { ...common, slots };
  const pool = createPool({
    ...common,
    boot: (flavour, signal) => boot({ ...flavour, name: "svc-pool" }, bootDeps, signal),
    dispose: async (container) => {
      await disposal.kill(container);
      disposal.remove(container);
    },
    freeMemory: () => engine.freeMemory,
    reservedMemory: 0,
    memoryBound: options.poolBytes ?? Number.POSITIVE_INFINITY,
    atOnce: options.refillsAtOnce ?? 1,
    lastForeground: options.lastForeground ?? (() => 0),
  });
  const poolSources = createPoolSources({
    ...common,
    disposal,
    pool,
    boot: (spec, signal) => boot(spec, bootDeps, signal),
    turns: turns.boots,
    onStart: () => undefined,
  });
  const { before } = options;
  if (before !== undefined) {
    const kept = [...before.sandboxes, ...before.frozen].map(({ container }) => container.slot.number);
    slots.adopt(kept, before.leftoverSlots, before.cleared);
  }
  const teardown = new Teardown(log);
  const nothing = { sandboxes: [], pooled: [], leftoverSlots: [], cleared: Promise.resolve(), frozen: [] };
  const storing = startSnapshots(
    {
      machine,
      stores,
      blobStore: noBlobStore,
      peering: { member: undefined },
      onChange: () => undefined,
      gate,
      slots,
      disposal,
      found: before ?? nothing,
      turns: turns.restores,
      diskBytes: () => 0,
      isRunning: (sandboxId) => live.isHere(sandboxId),
      capabilities: {
        now: () => ({ ...able, lazyPages: options.lazyPages ?? true }),
        memoryRefusal: () => options.memoryRefusal?.(),
      },
      config: settingsOf(options),
      disk: { ...roomyDisk, ...options.disk },
      now,
      log,
    },
    teardown,
  );
  const live = createLiveSet();
  for (const sandbox of before?.sandboxes ?? []) live.add(sandbox);
  const lease = createLease({
    bootId: own.host.id,
    store: stores.lease,
    live,
    gate,
    ...leaseOptions(options),
    onChange: () => void told.push("report wanted"),
    log,
  });
  const sandboxes = createSandboxes({
    ...common,
    live,
    disposal,
    start: createStart({
      sources: { ...poolSources, ...storing.sources },
      mutex: storing.mutex,
      stores,
      startCommand: () => Promise.resolve(),
    }),
    store: stores.executions,
    recordOf: (sandboxId) => stores.snapshots.pausedOf(sandboxId)?.record,
    closeStreams: (id) => Promise.resolve(void told.push(`close ${id}`)),
    beforeEnd: () => Promise.resolve(),
    onChange: () => undefined,
    rescue: (sandbox) => storing.rescue(sandbox),
    onStart: ({ executionId }) => void told.push(`start ${executionId}`),
    onExit: (reason) => void told.push(`exit ${reason}`),
    maxSandboxes: options.maxSandboxes ?? 100,
    ...START_LIMIT,
    ...options.limits,
    standstill: () => lease.refusal(),
    refusal: () => undefined,
  });
  const taker = createSnapshotTaker({
    sandboxes,
    snapshots: stores.snapshots,
    taking: storing.taking,
    beforeEnd: () => Promise.resolve(),
    memoryRefusal: () => options.memoryRefusal?.(),
    admit: storing.admission.admit,
    around: (sandbox, of, work) => lease.snapshot(sandbox, of, work),
    onChange: () => undefined,
  });
  if (options.targets !== undefined) pool.setTargets(options.targets);
  return {
    sandboxes,
    gate,
    lease,
    taker,
    snapshots: storing.snapshots,
    stored: storing,
    frozen: storing.frozen,
    copy: (...request) => storing.copy(...request),
    pool,
    stores,
    told,
    settled: () => disposal.settled(),
    async stop() {
      await pool.stop();
      await teardown.run();
      await disposal.settled();
      await slots.stop();
      stores.close();
    },
  };
}

/** Starts an agent on a machine of its own, and stops it after the test. */
export function liveParts(options: PartsOptions = {}): { engine: FakeEngine; parts: Parts } {
  const engine = fakeEngine();
  const parts = agentParts(engine, options);
  onTestFinished(() => parts.stop());
  return { engine, parts };
}

/**
 * A world of one sandbox for the property test. Its node has containers and snapshots, and may refuse a call or stay silent
 * before or after the work. Its orchestrator process may die between any two lines.
 */

import { createBackground } from "../../../../orchestrator/base/background.ts";
import { createSeeds } from "../../../../orchestrator/base/keys/seeds.ts";
import { createEnding, type Ending } from "../../../../orchestrator/lifecycle/ending/kill.ts";
import { createPausing } from "../../../../orchestrator/lifecycle/pausing/pause.ts";
import { createResuming } from "../../../../orchestrator/lifecycle/pausing/resume.ts";
import { createNetworkUpdating, type NewEgress } from "../../../../orchestrator/lifecycle/replace-policy.ts";
import { createCheckpointing } from "../../../../orchestrator/lifecycle/snapshots/checkpoint.ts";
import { createSnapshotRemover } from "../../../../orchestrator/lifecycle/snapshots/snapshot-removal.ts";
import { createProjectQuota } from "../../../../orchestrator/lifecycle/snapshots/stored-quota.ts";
import { createTransitions } from "../../../../orchestrator/lifecycle/transitions.ts";
import type { Nodes } from "../../../../orchestrator/nodes/nodes.ts";
import { createRoutingTable, type RoutingTable } from "../../../../orchestrator/nodes/routing-table.ts";
import { finishAbandoned } from "../../../../orchestrator/repairs/housekeeping.ts";
import { noSuspicions, reconcile } from "../../../../orchestrator/repairs/reconcile.ts";
import type { Project } from "../../../../orchestrator/store/projects/record.ts";
import { createStore, type Store } from "../../../../orchestrator/store/store.ts";
import type { StoredSnapshot } from "../../../../shared/agent-api/routes.ts";
import { newExecutionId } from "../../../../shared/ids.ts";
import { type EgressPolicy, OPEN } from "../../../../shared/policy/egress-policy.ts";
import { createLog } from "../../../../shared/program/log.ts";

import { createSeal } from "../../../../shared/program/seal.ts";
import { lifecycleCore } from "../../../support/fakes/lifecycle-core.ts";
import { openTestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { type Fault, ID, lifecycleNode } from "./lifecycle-node.ts";
import { guarded } from "./mortal.ts";

const TUNNELLED: NewEgress = {
  network: { denyOut: ["203.0.113.0/24"], egressProxy: { address: "198.51.100.1:1080", username: "me" } },
  internet: undefined,
  proxyPassword: "secret",
};
const FAULTS: Record<Fault, true> = { refuse: true, break: true, "silent before": true, "silent after": true };
export const sealing = createSeal("key", "the test");
const NODE = "n1";
/** As much as the sandbox reserves for a snapshot: a reservation that is never given back refuses the next one. */
const ROOM_FOR_ONE = 128 * 1024 ** 2;
const NOW = 5;
const log = createLog({ component: "test", level: "silent" });

export type Operation =
  | "pause"
  | "pause disk"
  | "connect"
  | "reboot"
  | "snapshot"
  | "deny"
  | "allow"
  | "expire"
  | "expire paused"
  | "kill"
  | "exit"
  | "crash"
  | Fault;

/** One life of the orchestrator's process: after its death it reaches neither the database nor the node. */
interface Process {
  readonly alive: { is: boolean };
  readonly died: Promise<void>;
  readonly die: () => void;
  readonly ending: Ending;
  readonly pausing: ReturnType<typeof createPausing>;
  readonly resuming: ReturnType<typeof createResuming>;
  readonly checkpointing: ReturnType<typeof createCheckpointing>;
  readonly networks: ReturnType<typeof createNetworkUpdating>;
  readonly routes: RoutingTable;
  readonly background: ReturnType<typeof createBackground>;
  readonly store: Store;
  readonly nodes: Nodes;
}

export interface LifecycleWorld {
  /** The live executions, each with the policy under which it runs. */
  readonly live: Map<string, EgressPolicy>;
  readonly snapshots: Map<string, StoredSnapshot>;
  readonly store: Store;
  routes(): RoutingTable;
  perform(operation: Operation): Promise<unknown>;
  /** Restarts the orchestrator with a healthy node; it completes or undoes each operation that its former process left. */
  settle(): Promise<void>;
  /** The snapshots that the orchestrator would ask the node to remove once all grace periods are over. */
  strays(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export async function lifecycleWorld(step: () => Promise<void>): Promise<LifecycleWorld> {
  const opened = await openTestDatabase();
  const store = createStore(opened.database, () => NOW, sealing);
  const project = await store.projects.create("test");
  const base = await store.templates.seed("base", {
    image: "base",
    cpuCount: 1,
    memoryMB: 128,
    diskSizeMB: 0,
    envdVersion: "0",
  });
  const node = lifecycleNode(step);
  const { live, snapshots, agent } = node;

  function boot(): Process {
    const alive = { is: true };
    let die: () => void = () => undefined;
    const died = new Promise<void>((resolve) => {
      die = () => {
        alive.is = false;
        resolve();
      };
    });
    const mine = guarded(store, alive);
    const nodes = {
      list: () => [],
      mayChange: () => true,
      refused: () => undefined,
      agent: () => guarded(agent, alive),
      get: () => ({ status: "ready" }),
      freed: () => undefined,
      placing: () => () => undefined,
    } as unknown as Nodes;
    const background = createBackground(log);
    const routes = createRoutingTable({
      seeds: createSeeds("seed", []),
      place: () => ({ proxyUrl: "http://127.0.0.1:1", sameHost: false }),
    });
    const transitions = createTransitions();
    const removal = createSnapshotRemover({ nodes, background, log, timeoutMs: 1_000 });
    const core = lifecycleCore({
      store: mine,
      nodes,
      routes,
      transitions,
      snapshots: removal,
      sealing,
      background,
      log,
    });
    const quota = createProjectQuota({ storage: mine.storage, nodes, log, quotaBytes: ROOM_FOR_ONE });
    const ending = createEnding({ core, observe: () => undefined });
    return {
      alive,
      died,
      die,
      ending,
      routes,
      background,
      store: mine,
      nodes,
      pausing: createPausing({ core, quota, onPaused: () => undefined }),
      resuming: createResuming({
        // The wait must be above zero: it is the time for concurrent transitions, and not for the node.
        core: {
          ...core,
          transitions: { ...transitions, perform: (each) => transitions.perform({ ...each, waitMs: 5_000 }) },
        },
        ending,
        elsewhere: { nodeFor: ({ home }) => Promise.resolve(home) },
      }),
      checkpointing: createCheckpointing({ core, quota }),
      networks: createNetworkUpdating({
        core,
        placeholders: { check: () => Promise.resolve() },
        tokenNames: () => new Set(),
      }),
    };
  }

  async function seeded(): Promise<void> {
    const executionId = newExecutionId();
    const sandbox = newSandbox({
      id: ID,
      projectId: project.id,
      executionId,
      nodeId: NODE,
      templateId: base.templateId,
      buildId: base.id,
      onTimeout: "pause",
      sealedEnvs: sealing.close("{}", ID),
    });
    await store.sandboxes.add(sandbox, { sandboxes: 10 });
    const running = await store.move({ id: ID, to: "running", set: { address: "127.0.0.1" } });
    live.set(executionId, OPEN);
    if (running !== undefined) current.routes.add(running);
  }

  let current = boot();
  await seeded();

  async function reborn(): Promise<void> {
    current.die();
    current = boot();
    for (const record of await store.sandboxes.routable()) current.routes.add(record);
    await store.sandboxes.abandonAll();
  }

  async function exit({ ending }: Process): Promise<unknown> {
    const record = await store.sandboxes.get(ID);
    if (record === undefined || !live.delete(record.executionId)) return undefined;
    return ending.ended(
      { sandboxId: ID, executionId: record.executionId, nodeId: NODE },
      { reason: "exited", exitCode: 1 },
    );
  }

  async function expire({ pausing }: Process): Promise<unknown> {
    const record = await store.sandboxes.get(ID);
    return record?.state === "running" ? pausing.expire(record) : undefined;
  }

  /** Another operation may come between the read and the kill. */
  async function expirePaused({ ending }: Process): Promise<unknown> {
    const record = await store.sandboxes.get(ID);
    await step();
    if (record?.state !== "paused" || record.snapshot === undefined) return undefined;
    return ending.expirePaused({ id: ID, snapshotId: record.snapshot.id }, NOW);
  }

  const ask = { seconds: 60, limit: { sandboxes: 10 } };
  const acts: Record<Exclude<Operation, Fault>, (process: Process) => Promise<unknown>> = {
    pause: ({ pausing }) => pausing.pause(project, ID, true),
    "pause disk": ({ pausing }) => pausing.pause(project, ID, false),
    connect: ({ resuming }) => resuming.resume(ID, { ...ask, memory: true }),
    reboot: ({ resuming }) => resuming.resume(ID, { ...ask, memory: false }),
    snapshot: ({ checkpointing }) => snapshotOf(checkpointing, project),
    deny: ({ networks }) => networks.replace(project, ID, TUNNELLED),
    allow: ({ networks }) =>
      networks.replace(project, ID, { network: {}, internet: undefined, proxyPassword: undefined }),
    kill: ({ ending }) => ending.kill(ID, "request"),
    crash: () => reborn(),
    exit,
    expire,
    "expire paused": expirePaused,
  };

  async function act(operation: Operation, process: Process): Promise<unknown> {
    return operation in FAULTS
      ? node.faults.push(operation as Fault)
      : acts[operation as Exclude<Operation, Fault>](process);
  }

  async function plan() {
    const stored = [...snapshots.values()];
    const wanted = await store.pausedSandboxes.wanted(stored.map(({ snapshotId }) => snapshotId));
    const record = await store.sandboxes.get(ID);
    const reported = [...live.keys()].map((executionId) => {
      return { executionId, sandboxId: ID, address: "", startedAt: 0, endAt: record?.endAt ?? 0 };
    });
    const sides = { nodeId: NODE, reported, snapshots: stored, wanted, records: record === undefined ? [] : [record] };
    return reconcile(sides, noSuspicions, { orphanMs: 0, missingMs: 0 }, NOW);
  }

  return {
    live,
    snapshots,
    store,
    routes: () => current.routes,
    async perform(operation) {
      const process = current;
      const work = act(operation, process);
      // Callers of a dead process get no answer, and stop waiting.
      return operation === "crash" ? work : Promise.race([work, process.died]);
    },
    async settle() {
      node.faults.length = 0;
      await reborn();
      for (let round = 0; round < 5; round++) {
        const { store: mine, nodes } = current;
        await finishAbandoned({ store: mine, nodes, lifecycle: current, now: () => Number.MAX_SAFE_INTEGER, log });
        await current.background.settled();
        const { pausedByNode, lost, stop, hold } = await plan();
        for (const each of pausedByNode) await current.pausing.adopt(each.record, each.stored);
        for (const { executionId } of lost)
          await current.ending.ended({ sandboxId: ID, executionId, nodeId: NODE }, { reason: "lost" });
        for (const executionId of [...stop, ...hold.map((one) => one.executionId)]) live.delete(executionId);
      }
      await current.checkpointing.sweep(Number.MAX_SAFE_INTEGER);
      await current.background.settled();
    },
    strays: async () => (await plan()).deleteSnapshots.map(({ snapshotId }) => snapshotId),
    close: () => opened.close(),
  };
}

async function snapshotOf(checkpointing: ReturnType<typeof createCheckpointing>, project: Project): Promise<void> {
  const { build } = await checkpointing.checkpoint(project, ID, {
    kind: "fork",
    memory: true,
    done: "forked",
    same: "wait",
  });
  await checkpointing.discard(build);
}

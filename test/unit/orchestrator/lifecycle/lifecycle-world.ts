/**
 * A world of one sandbox for the property test. Its node has containers and snapshots, and may refuse a call or stay silent
 * before or after the work. Its orchestrator process may die between any two lines, and its database may not take a move; there may
 * be two of them on one PostgreSQL database.
 */

import { sql } from "kysely";
import type { NewEgress } from "../../../../orchestrator/lifecycle/replace-policy.ts";
import { createCheckpointing } from "../../../../orchestrator/lifecycle/snapshots/checkpoint.ts";
import type { RoutingTable } from "../../../../orchestrator/nodes/routing-table.ts";
import { finishAbandoned } from "../../../../orchestrator/repairs/housekeeping.ts";
import { noSuspicions, reconcile } from "../../../../orchestrator/repairs/reconcile.ts";
import type { OpenedDatabase } from "../../../../orchestrator/store/database.ts";
import { joinMembers, type Membership } from "../../../../orchestrator/store/membership/membership.ts";
import type { Project } from "../../../../orchestrator/store/projects/record.ts";
import { createStore, type Store } from "../../../../orchestrator/store/store.ts";
import type { StoredSnapshot } from "../../../../shared/agent-api/routes.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { newExecutionId } from "../../../../shared/ids.ts";
import { type EgressPolicy, OPEN } from "../../../../shared/policy/egress-policy.ts";
import { openBeside, openTestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { type Fault, ID, lifecycleNode } from "./lifecycle-node.ts";
import { bootProcess, log, NOW, type Process, sealing } from "./lifecycle-process.ts";
import { pendingCalls } from "./pending-calls.ts";

const TUNNELLED: NewEgress = {
  network: { denyOut: ["203.0.113.0/24"], egressProxy: { address: "198.51.100.1:1080", username: "me" } },
  internet: undefined,
  proxyPassword: "secret",
};
const FAULTS: Record<Fault, true> = { refuse: true, break: true, "silent before": true, "silent after": true };
const NODE = "n1";
/** A snapshot of the sandbox, which is on the node all the time. */
const KEPT = "kept";

export type Operation =
  | "pause"
  | "pause disk"
  | "connect"
  | "reboot"
  | "snapshot"
  | "rewind"
  | "deny"
  | "allow"
  | "expire"
  | "expire paused"
  | "kill"
  | "exit"
  | "crash"
  | "unwritten"
  | Fault;

export interface LifecycleWorld {
  /** The live executions, each with the policy under which it runs. */
  readonly live: Map<string, EgressPolicy>;
  readonly snapshots: Map<string, StoredSnapshot>;
  /** Where two processes that live have worked on the sandbox at the same time. */
  readonly clashes: readonly string[];
  /** Whether two processes have asked their database, and it has not answered all of it. */
  asks(): boolean;
  readonly store: Store;
  routes(): RoutingTable;
  /** @param at the process that performs it */
  perform(operation: Operation, at?: number): Promise<unknown>;
  /** Restarts one orchestrator with a healthy node; it completes or undoes each operation that former processes left. */
  settle(): Promise<void>;
  /** The snapshots that the orchestrator would ask the node to remove once all grace periods are over. */
  strays(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** @param beside a database on a server, which two processes use */
export async function lifecycleWorld(step: () => Promise<void>, beside?: string): Promise<LifecycleWorld> {
  const opened =
    beside === undefined ? [await openTestDatabase()] : [await openBeside(beside), await openBeside(beside)];
  const [{ database }] = opened as [OpenedDatabase];
  const store = createStore(database, () => NOW, sealing);
  const memberships: Membership[] = [];
  const pending = pendingCalls();
  const unwritten = { next: 0 };

  /** The database does not take some moves to `running`: what a node has started is not recorded. */
  const failing = (own: Store): Store => ({
    ...own,
    move(move, event) {
      if (move.to !== "running" || unwritten.next === 0) return own.move(move, event);
      unwritten.next--;
      return Promise.reject(new AppError("unavailable", "the database is away"));
    },
  });

  /** A process as the only one, or as a member. */
  async function storeOf(at: number): Promise<{ readonly store: Store; readonly memberId: string }> {
    if (beside === undefined) return { store: failing(store), memberId: "" };
    const own = (opened[at] as OpenedDatabase).database;
    const given = { log, now: Date.now, version: "0", leaseMs: 600_000, onDifference: () => undefined };
    const members = await joinMembers(own, given);
    memberships.push(members);
    const shared = pending.of(createStore(own, () => NOW, sealing, { members }));
    // Between the look at what the others do and the work, they may begin and end something.
    const operations: Store["operations"] = {
      ...shared.operations,
      async elsewhere(id) {
        const found = await shared.operations.elsewhere(id);
        await step();
        return found;
      },
    };
    return { store: failing({ ...shared, operations }), memberId: members.self?.id ?? "" };
  }

  const project = await store.projects.create("test");
  const base = await store.templates.seed("base", {
    image: "base",
    cpuCount: 1,
    memoryMB: 128,
    diskSizeMB: 0,
    envdVersion: "0",
  });
  const node = lifecycleNode(step);
  const { live, snapshots, clashes, agentFor } = node;

  const boot = async (at = 0) => bootProcess({ ...(await storeOf(at)), agentFor });

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
    if (running !== undefined) for (const { routes } of processes) routes.add(running);
  }

  const processes = await Promise.all(opened.map((_, at) => boot(at)));
  const process = (at: number) => processes[at] as Process;
  await seeded();

  /** Nobody waits until the row of the former process lapses. */
  async function die({ die: end, memberId }: Process): Promise<void> {
    end();
    await sql`update orchestrators set expires_at = 0 where id = ${memberId}`.execute(database);
  }

  async function reborn(at: number): Promise<void> {
    await die(process(at));
    const born = await boot(at);
    processes[at] = born;
    for (const record of await store.sandboxes.routable()) born.routes.add(record);
    await born.store.sandboxes.abandonAll();
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

  const sizes = { memoryBytes: 0, diskBytes: 0, takenAt: 0 };
  snapshots.set(KEPT, {
    snapshotId: KEPT,
    kind: "checkpoint",
    sandboxId: ID,
    executionId: newExecutionId(),
    memory: true,
    ...sizes,
  });
  const kept = { ...base, id: KEPT, kind: "snapshot", nodeId: NODE, memory: true, sourceSandboxId: ID } as const;
  const rewind = { name: KEPT, snapshot: kept, memory: true, seconds: undefined, pausedSeconds: 60 };

  const ask = { seconds: 60, limit: { sandboxes: 10 } };
  const acts: Record<Exclude<Operation, Fault>, (process: Process) => Promise<unknown>> = {
    pause: ({ pausing }) => pausing.pause(project, ID, true),
    "pause disk": ({ pausing }) => pausing.pause(project, ID, false),
    connect: ({ resuming }) => resuming.resume(ID, { ...ask, memory: true }),
    reboot: ({ resuming }) => resuming.resume(ID, { ...ask, memory: false }),
    snapshot: ({ checkpointing }) => snapshotOf(checkpointing, project),
    rewind: ({ rewinding }) => rewinding.rewind(project, ID, rewind),
    deny: ({ networks }) => networks.replace(project, ID, TUNNELLED),
    allow: ({ networks }) =>
      networks.replace(project, ID, { network: {}, internet: undefined, proxyPassword: undefined }),
    kill: ({ ending }) => ending.kill(ID, "request"),
    crash: (of) => reborn(processes.indexOf(of)),
    unwritten: () => Promise.resolve(void unwritten.next++),
    exit,
    expire,
    "expire paused": expirePaused,
  };

  async function act(operation: Operation, by: Process): Promise<unknown> {
    return operation in FAULTS
      ? node.faults.push(operation as Fault)
      : acts[operation as Exclude<Operation, Fault>](by);
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
    clashes,
    asks: () => pending.count > 0,
    store,
    routes: () => process(0).routes,
    async perform(operation, at = 0) {
      const by = process(at);
      const work = act(operation, by);
      // Callers of a dead process get no answer, and stop waiting.
      return operation === "crash" ? work : Promise.race([work, by.died]);
    },
    async settle() {
      node.faults.length = 0;
      unwritten.next = 0;
      for (const other of processes.slice(1)) await die(other);
      await reborn(0);
      const current = process(0);
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
    strays: async () => {
      const { deleteSnapshots, removeSnapshots } = await plan();
      return [...deleteSnapshots, ...removeSnapshots].map(({ snapshotId }) => snapshotId);
    },
    async close() {
      for (const membership of memberships) await membership.stop();
      for (const each of opened) await each.close();
    },
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

/**
 * Schedules builds: a queue in the database, a round that gives queued builds a node with room, and a follower for each
 * assigned build. A build is `building` from its start request, also while it is queued. Of several orchestrators one gives
 * nodes and follows; a build whose registry needs credentials is followed by the one that has them.
 */

import type { RegistryAccess } from "../../shared/agent-api/build-shapes.ts";
import { AppError } from "../../shared/http/errors.ts";
import { loop } from "../../shared/program/loop.ts";
import type { Base } from "../base/base.ts";
import type { Images } from "../lifecycle/start/images.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { ofNodes } from "../nodes/of-nodes.ts";
import { type Demand, placementPolicy } from "../nodes/placement/candidate.ts";
import { choose, eachReason, explain } from "../nodes/placement/choose.ts";
import type { Pools } from "../nodes/pools/pool-targets.ts";
import type { StartedBuild, UnderWayBuild } from "../store/builds/builds.ts";
import type { Build } from "../store/builds/record.ts";
import type { Store } from "../store/store.ts";
import { type BaseDemand, createBaseTemplates, nearFirst } from "./base-template.ts";
import type { BuildCleaning } from "./cleanup.ts";
import { type BuildRunDeps, followBuild } from "./run.ts";

export interface BuildQueue {
  /** False: the build is not in the waiting state. Builds that it supersedes are cancelled. */
  start(started: Omit<StartedBuild, "deadlineAt" | "withAccess">, access: RegistryAccess | undefined): Promise<boolean>;
  /** Fails every build of the project that is under way. */
  cancelAll(projectId: string): Promise<{ readonly cancelled: number; readonly failed: number }>;
  /** Stops following builds whose records are deleted. */
  forget(buildIds: readonly string[]): void;
  /** Stops following; builds under way continue on their nodes. */
  stop(): Promise<void>;
}

const EVERY_MS = 500;
/** The lease of those who give nodes to builds. */
const LEASE = "builds";

export interface BuildQueueDeps {
  readonly base: Base;
  readonly store: Store;
  readonly nodes: Nodes;
  readonly images: Images;
  readonly pools: Pools;
  readonly metrics: Metrics;
  readonly cleaning: BuildCleaning;
}

type Waiting = UnderWayBuild;

/** Added to the node's own time limit before the orchestrator gives a build up. */
const SLACK_MS = 60_000;
/** A node that refused a build gets no other build for this time. */
const REFUSED_MS = 1_000;
const MIB = 1024 * 1024;

export function startBuildQueue({ base, store, nodes, images, pools, metrics, cleaning }: BuildQueueDeps): BuildQueue {
  const { config, sealing, now, random, log, leases } = base;
  const placement = placementPolicy(config);
  const bases = createBaseTemplates({ templates: store.templates, nodes, images, now });
  const runDeps: BuildRunDeps = {
    store,
    nodes,
    bases,
    sealing,
    now,
    random,
    log,
    pollEveryMs: config.buildPollMs,
    silentMs: config.nodeLostMs,
    ready: (build, former) => pools.replaced(former, build),
    observe: (result, seconds) => metrics.built(result, seconds),
  };
  /** Most builds of a project at the same time. */
  const mostOf = async (projectId: string) =>
    (await store.projects.find(projectId))?.limits.builds ?? config.maxProjectBuilds;
  /** Registry credentials of queued builds: kept in this memory only. `begun`: the record says that the build is queued. */
  const access = new Map<string, { readonly credentials: RegistryAccess; readonly begun: boolean }>();
  const followed = new Map<string, { readonly stopping: AbortController; readonly done: Promise<void> }>();
  const refusedUntil = ofNodes<number>((nodeId) => nodes.place(nodeId) !== undefined);

  async function run(build: Build & { readonly nodeId: string }, signal: AbortSignal): Promise<void> {
    const { id, nodeId } = build;
    // The node itself reports the disks of the containers that it builds in.
    const free = nodes.placing(nodeId, { ...build, diskSizeMB: 0 });
    try {
      const credentials = { get: () => access.get(id)?.credentials, drop: () => void access.delete(id) };
      const end = await followBuild({ build, credentials, signal }, runDeps);
      if (end === "stopped") return;
      if (end !== "over") {
        if (end === "refused") refusedUntil.set(nodeId, now() + REFUSED_MS);
        else bases.failed(build, end.lacks);
        await store.builds.requeue(id, nodeId, (build.startedAt ?? now()) + config.buildQueueMs);
        return;
      }
      access.delete(id);
      cleaning.soon();
    } catch (error) {
      log.warn({ err: error, buildId: id, nodeId }, "could not follow a build on its node");
    } finally {
      free("refused");
    }
  }

  function follow(build: Build & { readonly nodeId: string }): void {
    if (followed.has(build.id)) return;
    const stopping = new AbortController();
    const done = run(build, stopping.signal).finally(() => {
      followed.delete(build.id);
      if (!stopping.signal.aborted) rounds.wake();
    });
    followed.set(build.id, { stopping, done });
  }

  /** Chooses a node for the build, or says why there is none and whether that may change soon. */
  function nodeFor(build: Waiting, { home, having, lacking }: BaseDemand, placed: ReadonlyMap<string, number>) {
    const candidates = nodes.candidates();
    const busy = candidates.filter(
      ({ id }) =>
        (home === undefined || id === home) &&
        !lacking.has(id) &&
        ((placed.get(id) ?? 0) >= config.maxNodeBuilds || (refusedUntil.get(id) ?? 0) > now()),
    );
    const exclude = new Map([...lacking, ...busy.map(({ id }) => [id, "is building"] as const)]);
    const { cpuCount, memoryMB, diskSizeMB } = build;
    const room = { cpuCount, memoryBytes: memoryMB * MIB, diskBytes: diskSizeMB * MIB };
    const demand: Demand = {
      ...room,
      labels: build.nodeLabels,
      exclude,
      region: build.region,
      home: home === undefined ? undefined : { nodeId: home, has: "the build's base" },
    };
    const choice = nearFirst(candidates, having, (far) =>
      choose(candidates, { ...demand, exclude: new Map([...far, ...exclude]) }, placement, random),
    );
    if (choice.is === "none" && busy.length > 0)
      return { is: "full", of: "other", reason: "every node is building" } as const;
    if (choice.is === "none" && lacking.size > 0) {
      const passed = explain(candidates, demand, placement).flatMap(({ node, misfit }) =>
        misfit === undefined ? [] : [{ node, ...misfit }],
      );
      const reason = `none takes it that has the template it is based on: ${eachReason(passed)}`;
      return { is: "none", reason } as const;
    }
    // A node that is building may have the disk.
    return choice.is === "full" && busy.length > 0 ? ({ ...choice, of: "other" } as const) : choice;
  }

  async function giveUp(build: Waiting, message: string): Promise<undefined> {
    access.delete(build.id);
    await store.builds.fail(build.id, { message, step: undefined }, "not logged");
    return undefined;
  }

  /** Gives the build to a node and returns the node. Undefined: the build stays in the queue, or has failed. */
  async function give(build: Waiting, placed: ReadonlyMap<string, number>): Promise<string | undefined> {
    const demand = await bases.demand(build);
    if (demand === undefined) return giveUp(build, "the template it is based on was deleted");
    const choice =
      demand instanceof AppError ? ({ is: "none", reason: demand.message } as const) : nodeFor(build, demand, placed);
    const waited = now() - (build.startedAt ?? now());
    if (choice.is === "node") {
      const deadlineAt = now() + config.buildLimitMs + SLACK_MS;
      if (!(await store.builds.place(build.id, choice.id, deadlineAt))) return undefined;
      if (!build.elsewhere) follow({ ...build, nodeId: choice.id, deadlineAt });
      return choice.id;
    }
    const reason = choice.is === "connecting" ? "the node is not connected again yet" : choice.reason;
    const hopeless = choice.is === "none" || (choice.is === "full" && choice.of === "disk");
    if (waited > config.buildQueueMs || (hopeless && waited > config.placementTimeoutMs)) {
      access.delete(build.id);
      await store.builds.fail(
        build.id,
        { message: `no node could build it: ${reason}`, step: undefined },
        "not logged",
      );
    }
    return undefined;
  }

  /** Whether this orchestrator follows the build. */
  function isOurs({ id, elsewhere }: UnderWayBuild, leads: boolean): boolean {
    return !elsewhere && (leads || access.has(id));
  }

  /** Another orchestrator may have failed or deleted builds of which this one has the credentials. */
  function forgetAccess(all: readonly UnderWayBuild[]): void {
    const queued = new Set(all.map(({ id }) => id));
    for (const [id, { begun }] of access) if (begun && !queued.has(id)) access.delete(id);
  }

  /** Stops following what another orchestrator follows from now on. */
  function leaveToOthers(all: readonly UnderWayBuild[], leads: boolean): void {
    const ours = new Set(all.filter((build) => isOurs(build, leads)).map(({ id }) => id));
    const known = new Set(all.map(({ id }) => id));
    for (const [id, { stopping }] of followed) if (known.has(id) && !ours.has(id)) stopping.abort();
  }

  const rounds = loop({ name: "builds", everyMs: EVERY_MS, log }, async () => {
    const leading = await leases.lead(LEASE);
    const all = await store.builds.underWay();
    forgetAccess(all);
    bases.keep(new Set(all.map(({ id }) => id)));
    leaveToOthers(all, leading !== undefined);
    const ofProject = new Map<string, number>();
    const onNode = new Map<string, number>();
    const count = (counts: Map<string, number>, key: string) => counts.set(key, (counts.get(key) ?? 0) + 1);
    for (const build of all) {
      const { nodeId } = build;
      if (nodeId === undefined) continue;
      count(ofProject, build.projectId);
      count(onNode, nodeId);
      if (isOurs(build, leading !== undefined)) follow({ ...build, nodeId });
    }
    for (const build of all) {
      if (build.nodeId !== undefined || leading === undefined || leading.aborted) continue;
      if ((ofProject.get(build.projectId) ?? 0) >= (await mostOf(build.projectId))) continue;
      const nodeId = await give(build, onNode);
      if (nodeId === undefined) continue;
      count(ofProject, build.projectId);
      count(onNode, nodeId);
    }
  });

  function forget(buildIds: readonly string[]): void {
    for (const id of buildIds) {
      access.delete(id);
      followed.get(id)?.stopping.abort();
    }
    if (buildIds.length === 0) return;
    cleaning.soon();
    rounds.wake();
  }

  return {
    forget,

    async start(started, credentials) {
      // Before the record is written, because the next round may read it at once.
      const former = access.get(started.id);
      if (credentials !== undefined) access.set(started.id, { credentials, begun: false });
      const begun = await store.builds.start({
        ...started,
        withAccess: credentials !== undefined,
        deadlineAt: now() + config.buildQueueMs,
      });
      if (begun === undefined) {
        if (former === undefined) access.delete(started.id);
        else access.set(started.id, former);
        return false;
      }
      if (credentials !== undefined && access.has(started.id)) access.set(started.id, { credentials, begun: true });
      forget(begun.superseded.map(({ id }) => id));
      rounds.wake();
      return true;
    },

    async cancelAll(projectId) {
      const outcome = { cancelled: 0, failed: 0 };
      for (const { id } of await store.builds.underWay(projectId)) {
        try {
          const reason = { message: "the build was cancelled by an operator", step: undefined };
          if ((await store.builds.fail(id, reason, "not logged")) !== undefined) outcome.cancelled++;
          forget([id]);
        } catch (error) {
          log.warn({ err: error, buildId: id }, "could not cancel a build");
          outcome.failed++;
        }
      }
      return outcome;
    },

    async stop() {
      await rounds.stop();
      const left = [...followed.values()];
      for (const { stopping } of left) stopping.abort();
      await Promise.all(left.map(({ done }) => done));
    },
  };
}

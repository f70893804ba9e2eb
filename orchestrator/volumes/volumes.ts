/**
 * Creates and deletes volumes: the record first, then the node. A creation that was interrupted becomes a deletion, and a
 * deletion is repeated until the node has confirmed it.
 */

import { AppError, isError } from "../../shared/http/errors.ts";
import { newUuid } from "../../shared/ids.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Loop } from "../../shared/program/loop.ts";
import type { Background } from "../base/background.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { PlacementPolicy } from "../nodes/placement/candidate.ts";
import { choose } from "../nodes/placement/choose.ts";
import type { Rounds } from "../store/membership/leases.ts";
import type { Project } from "../store/projects/record.ts";
import type { Volume } from "../store/volumes/record.ts";
import type { NotAdded, VolumeLimits, VolumeStore } from "../store/volumes/volumes.ts";

export interface VolumesDeps {
  readonly store: VolumeStore;
  readonly nodes: Nodes;
  readonly background: Background;
  readonly placement: PlacementPolicy;
  readonly limits: (project: Project) => VolumeLimits;
  readonly sizeMb: number;
  /** For one call to a node. */
  readonly timeoutMs: number;
  readonly repairEveryMs: number;
  readonly rounds: Rounds;
  readonly now: () => number;
  readonly random: () => number;
  readonly log: Log;
}

export interface VolumeWork {
  create(project: Project, name: string): Promise<Volume>;
  /** Undefined: it is not the project's, or not ready. */
  find(projectId: string, id: string): Promise<Volume | undefined>;
  /** False: there is no such volume. @throws {AppError} conflict when something mounts it */
  delete(project: Project, id: string): Promise<boolean>;
  /** Deletes those of a project that nothing mounts. */
  deleteAll(projectId: string): Promise<void>;
  /** Starts the rounds that finish what was interrupted. */
  startRepairs(): Loop;
}

const MIB = 1024 ** 2;
/** Deletions in one round. */
const AT_ONCE = 20;
/** Most ids in a message. */
const NAMED = 10;
/** Beyond the time of a call: a creation that is older was interrupted. */
const SLACK_MS = 30_000;

export function createVolumeWork(deps: VolumesDeps): VolumeWork {
  const { store, nodes, now } = deps;

  function home(): string {
    const able = new Set(
      nodes
        .list()
        .filter(({ facts }) => facts.capabilities.volumes === true)
        .map(({ id }) => id),
    );
    const all = nodes.candidates();
    const candidates = all.filter(({ id }) => able.has(id));
    const demand = {
      cpuCount: 0,
      memoryBytes: 0,
      diskBytes: deps.sizeMb * MIB,
      labels: {},
      exclude: new Map<string, string>(),
    };
    const choice = choose(candidates, demand, deps.placement, deps.random);
    if (choice.is === "node") return choice.id;
    if (choice.is === "full" && choice.of === "disk") throw new AppError("no_space", `no volume: ${choice.reason}`);
    if (choice.is === "full") throw new AppError("cluster_at_capacity", `no volume: ${choice.reason}`);
    if (choice.is === "connecting") throw new AppError("unavailable", "no node has reported yet: try again");
    const reason = all.length > 0 && candidates.length === 0 ? "no node can keep volumes" : choice.reason;
    throw new AppError("no_compatible_node", `no volume: ${reason}`);
  }

  async function remove({ id, nodeId }: Volume): Promise<void> {
    await nodes.agent(nodeId).deleteVolume({ params: { volumeId: id } }, { timeoutMs: deps.timeoutMs });
    await store.forget(id);
  }

  /** No request finds the volume any more. When its node does not answer now, the repairs remove its files. */
  async function removeNowOrLater(volume: Volume): Promise<void> {
    try {
      await remove(volume);
    } catch (error) {
      if (!isError(error, "node_unreachable"))
        deps.log.warn({ err: error, volumeId: volume.id }, "a volume is deleted later");
    }
  }

  async function repair(): Promise<void> {
    const old = { creating: now() - deps.timeoutMs - SLACK_MS, deleting: now() - deps.repairEveryMs };
    for (const volume of await store.unfinished(old, AT_ONCE)) {
      // It may have become ready meanwhile.
      if (volume.state === "creating" && !(await store.giveUp(volume.id))) continue;
      try {
        await remove(volume);
      } catch (error) {
        await store.postpone(volume.id);
        deps.log.warn(
          { err: error, volumeId: volume.id, nodeId: volume.nodeId },
          "could not delete a volume on its node",
        );
      }
    }
  }

  return {
    async create(project, name) {
      const { sizeMb } = deps;
      const volume = { id: newUuid(), projectId: project.id, name, nodeId: home(), sizeMb };
      const limits = deps.limits(project);
      const refused = await store.add(volume, limits);
      if (refused !== undefined) throw notAdded(name, refused, { limits, sizeMb });
      try {
        await nodes
          .agent(volume.nodeId)
          .makeVolume({ params: { volumeId: volume.id }, body: { sizeMb } }, { timeoutMs: deps.timeoutMs });
        if (!(await store.markReady(volume.id)))
          throw new AppError("unavailable", "the volume was not made in time: try again");
        return { ...volume, state: "ready" };
      } catch (reason) {
        // Where it is not `creating` any more, its answer was lost after the record was written, or repairs have begun.
        if (await store.giveUp(volume.id))
          deps.background.run("delete failed volume", () => remove({ ...volume, state: "deleting" }));
        throw reason;
      }
    },

    async find(projectId, id) {
      const volume = await store.get(id);
      return volume?.projectId === projectId && volume.state === "ready" ? volume : undefined;
    },

    async delete(project, id) {
      const volume = await this.find(project.id, id);
      if (volume === undefined) return false;
      const used = await store.beginDeletion(id);
      if (used === undefined) return false;
      const { sandboxes, snapshots } = used;
      if (sandboxes.length + snapshots.length > 0) {
        const by = [named("sandbox", "sandboxes", sandboxes), named("snapshot", "snapshots", snapshots)].filter(
          Boolean,
        );
        throw new AppError("conflict", `Volume '${volume.name}' is mounted by ${by.join(" and ")}: delete them first`);
      }
      await removeNowOrLater(volume);
      return true;
    },

    async deleteAll(projectId) {
      for (const volume of await store.list(projectId)) {
        const used = await store.beginDeletion(volume.id);
        if (used === undefined || used.sandboxes.length + used.snapshots.length > 0) continue;
        await removeNowOrLater(volume);
      }
    },

    startRepairs: () =>
      deps.rounds({ name: "volume repairs", everyMs: deps.repairEveryMs, log: deps.log }, () => repair()),
  };
}

function named(one: string, many: string, ids: readonly string[]): string {
  if (ids.length === 0) return "";
  const shown = ids.slice(0, NAMED).join(", ");
  const more = ids.length > NAMED ? ` and ${ids.length - NAMED} more` : "";
  return `${ids.length === 1 ? one : many} ${shown}${more}`;
}

function notAdded(
  name: string,
  refused: NotAdded,
  { limits, sizeMb }: { readonly limits: VolumeLimits; readonly sizeMb: number },
): AppError {
  if (refused.is === "duplicate") return new AppError("conflict", `Volume with name '${name}' already exists`);
  const limit =
    refused.of === "count"
      ? `${limits.count} volumes and has ${refused.used}`
      : `${limits.totalMb} MiB of volumes and has ${refused.used}; another one takes ${sizeMb}`;
  return new AppError(
    "forbidden",
    `the project may have ${limit}: delete one, or ask the operator of the platform for a higher limit`,
  );
}

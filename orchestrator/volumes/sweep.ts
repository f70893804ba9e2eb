/**
 * Compares the volumes that nodes keep with the records. A volume without a record may be somebody's data, as after an older
 * copy of the database was restored: it is reported and stays, unless this orchestrator gave up its creation.
 */

import type { KeptVolume } from "../../shared/agent-api/routes.ts";
import type { Log } from "../../shared/program/log.ts";
import { type Loop, loop } from "../../shared/program/loop.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { VolumeStore } from "../store/volumes/volumes.ts";

interface VolumeProblems {
  /** Volumes of the node without a record. */
  readonly unknown: readonly KeptVolume[];
  /** Ids of volumes that a record says are ready, and that the node does not have. */
  readonly missing: readonly string[];
}

interface SweepDeps {
  readonly store: VolumeStore;
  readonly nodes: Nodes;
  /** How long a difference must last: a volume may be made or deleted between the two lists. */
  readonly graceMs: number;
  readonly everyMs: number;
  /** For one call to a node. */
  readonly timeoutMs: number;
  readonly now: () => number;
  readonly log: Log;
  observe(nodeId: string, problems: VolumeProblems): void;
  /** The node was removed. */
  forget(nodeId: string): void;
}

export interface VolumeSweep {
  /** What the last comparison found on the node. */
  problems(nodeId: string): VolumeProblems;
  start(): Loop;
}

const NONE: VolumeProblems = { unknown: [], missing: [] };

export function createVolumeSweep(deps: SweepDeps): VolumeSweep {
  const { store, nodes, graceMs, now, log } = deps;
  const found = new Map<string, VolumeProblems>();
  /** When a difference was first seen, by node and volume. */
  const firstSeen = new Map<string, ReadonlyMap<string, number>>();

  async function compare(nodeId: string): Promise<void> {
    const kept = await nodes.agent(nodeId).listVolumes({}, { timeoutMs: deps.timeoutMs });
    // After the node: a record is older than its volume, and is forgotten after it.
    const records = await store.onNode(nodeId);
    const [known, there] = [new Set(records.map(({ id }) => id)), new Set(kept.map(({ volumeId }) => volumeId))];
    const unknown = kept.filter(({ volumeId }) => !known.has(volumeId));
    const missing = records.filter(({ id, state }) => state === "ready" && !there.has(id)).map(({ id }) => id);
    const before = firstSeen.get(nodeId);
    const since = new Map(
      [...unknown.map(({ volumeId }) => volumeId), ...missing].map((id) => [id, before?.get(id) ?? now()]),
    );
    firstSeen.set(nodeId, since);
    const lasts = (id: string) => before?.has(id) === true && now() - (since.get(id) ?? now()) >= graceMs;
    const lasting = unknown.filter(({ volumeId }) => lasts(volumeId));
    const givenUp = await store.givenUp(lasting.map(({ volumeId }) => volumeId));
    const left = lasting.filter(({ volumeId }) => givenUp.has(volumeId));
    const problems = {
      unknown: lasting.filter(({ volumeId }) => !givenUp.has(volumeId)),
      missing: missing.filter(lasts),
    };
    report(nodeId, problems);
    for (const { volumeId } of left) {
      await nodes.agent(nodeId).deleteVolume({ params: { volumeId } }, { timeoutMs: deps.timeoutMs });
      log.info({ nodeId, volumeId }, "deleted a volume whose creation was given up");
    }
  }

  function report(nodeId: string, problems: VolumeProblems): void {
    const { unknown, missing } = found.get(nodeId) ?? NONE;
    const reported = new Set([...unknown.map(({ volumeId }) => volumeId), ...missing]);
    for (const { volumeId, ...size } of problems.unknown) {
      if (reported.has(volumeId)) continue;
      const route = `/admin/nodes/${nodeId}/volumes/${volumeId}`;
      log.error(
        { nodeId, volumeId, ...size },
        `a node has a volume without a record, and keeps it: POST ${route} gives it to a project, DELETE ${route} removes it`,
      );
    }
    for (const volumeId of problems.missing)
      if (!reported.has(volumeId))
        log.error(
          { nodeId, volumeId },
          "a node does not have a volume of its records: restore a copy with scripts/volume, or delete the volume",
        );
    found.set(nodeId, problems);
    deps.observe(nodeId, problems);
  }

  function forgetRemoved(): void {
    for (const nodeId of firstSeen.keys()) {
      if (nodes.get(nodeId) !== undefined) continue;
      firstSeen.delete(nodeId);
      found.delete(nodeId);
      deps.forget(nodeId);
    }
  }

  async function sweep(): Promise<void> {
    forgetRemoved();
    for (const { id, facts, status } of nodes.list()) {
      if (facts.capabilities.volumes !== true || status === "unhealthy" || status === "connecting") continue;
      try {
        await compare(id);
      } catch (error) {
        log.warn({ err: error, nodeId: id }, "could not compare the volumes of a node with the records");
      }
    }
  }

  return {
    problems: (nodeId) => found.get(nodeId) ?? NONE,
    start: () => loop({ name: "volume sweep", everyMs: deps.everyMs, log }, () => sweep()),
  };
}

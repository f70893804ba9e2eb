/** What operators can free: on each node what no record references, of each project what expires soon and what is largest. */

import type { Garbage } from "../../shared/agent-api/routes.ts";
import type { StorageReport, storageApi } from "../../shared/api/storage.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { iso } from "../forms/time.ts";
import { uploadOf } from "../lifecycle/whereabouts.ts";
import type { NodeView } from "../nodes/entry.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { StoredItem } from "../store/storage/storage.ts";
import { totalBytes } from "../store/storage/stored-bytes.ts";
import type { TemplateBuild } from "../store/storage/template-builds.ts";
import type { Store } from "../store/store.ts";
import type { VolumeSweep } from "../volumes/sweep.ts";
import { expiresAt, type Lifetimes, type StoredByProject, storedByProject } from "./storage-plan.ts";

export interface StorageReportDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly lifetimes: Lifetimes;
  /** 0: no quota over all nodes. */
  readonly quotaBytes: number;
  readonly now: () => number;
  readonly volumeProblems: VolumeSweep["problems"];
}

/** A node lists its images in Docker for the answer. */
const NODE_LIMIT = { timeoutMs: 15_000 };

type Shown = StorageReport["projects"][number];

export function createStorageHandlers(deps: StorageReportDeps): Handlers<typeof storageApi> {
  const { store, nodes, lifetimes, quotaBytes, now } = deps;

  const shownItem = async (item: StoredItem): Promise<Shown["largest"][number]> => {
    const end = expiresAt(item, lifetimes);
    const inStore = (await store.blobRefs.of(item.snapshotId)) !== undefined;
    return {
      kind: item.kind,
      id: item.id,
      templateID: item.templateId,
      nodeID: item.nodeId ?? null,
      inStore,
      upload: inStore ? null : uploadOf(item.snapshotId, nodes.get(item.nodeId ?? "")),
      storedBytes: item.size === undefined ? null : totalBytes(item.size),
      unusedSince: iso(item.unusedSince),
      inUse: item.inUse,
      expiresAt: end === undefined ? null : iso(end),
    };
  };

  async function ofProject({ projectId, expiringSoon, largest, ...counts }: StoredByProject): Promise<Shown> {
    const project = await store.projects.find(projectId);
    return {
      teamID: projectId,
      name: project?.name ?? "",
      storedBytes: await store.storage.projectBytes(projectId),
      quotaBytes,
      ...counts,
      expiringSoon: await Promise.all(expiringSoon.map(shownItem)),
      largest: await Promise.all(largest.map(shownItem)),
    };
  }

  async function ofNode({ id, status, load }: NodeView): Promise<StorageReport["nodes"][number]> {
    const { unknown, missing } = deps.volumeProblems(id);
    const node = {
      nodeID: id,
      status,
      storedBytes: load.stored?.storedBytes ?? 0,
      quotaBytes: load.stored?.quotaBytes ?? 0,
      unknownVolumes: unknown.map(({ volumeId, sizeMb, usedBytes }) => ({
        volumeID: volumeId,
        sizeMB: sizeMb,
        usedBytes,
      })),
      missingVolumes: [...missing],
    };
    try {
      return { ...node, error: null, garbage: shownGarbage(await nodes.agent(id).listGarbage({}, NODE_LIMIT)) };
    } catch (error) {
      return { ...node, error: AppError.from(error).message, garbage: null };
    }
  }

  async function templates(): Promise<StorageReport["templates"]> {
    const known = nodes.list();
    return (await store.storage.templateBuilds()).map((build) => ({
      templateID: build.templateId,
      buildID: build.buildId,
      teamID: build.projectId,
      nodeID: build.nodeId ?? null,
      heldBy: known.filter(({ images }) => images.has(build.buildId)).map(({ id }) => id),
      inStore: build.inStore,
      hasMemory: build.snapshotId !== undefined,
      memoryInStore: build.memoryInStore,
      upload: build.inStore ? null : imageUploadOf(build, known),
    }));
  }

  return {
    async readStorage() {
      const items = await store.storage.all();
      const projects: Shown[] = [];
      for (const each of storedByProject(items, { lifetimes, now: now() })) projects.push(await ofProject(each));
      return { nodes: await Promise.all(nodes.list().map(ofNode)), projects, templates: await templates() };
    },
  };
}

/** How far the node that built it is with its image. */
function imageUploadOf(
  { buildId, nodeId }: TemplateBuild,
  nodes: readonly NodeView[],
): StorageReport["templates"][number]["upload"] {
  const home = nodes.find(({ id }) => id === nodeId);
  const stored = home?.load.images?.find((each) => each.buildId === buildId)?.stored;
  if (stored === undefined || "ref" in stored) return null;
  if ("failure" in stored) return { doneBytes: 0, totalBytes: 0, failure: stored.failure };
  return { ...stored, failure: null };
}

function shownGarbage({ memory, images, buildImages, layers }: Garbage) {
  return {
    memory: memory.map(({ snapshotId, bytes }) => ({ snapshotID: snapshotId, bytes: bytes ?? null })),
    images: images.map(({ image, snapshotId }) => ({ image, snapshotID: snapshotId })),
    buildImages: [...buildImages],
    layers: layers.map(({ image, bytes }) => ({ image, bytes })),
  };
}

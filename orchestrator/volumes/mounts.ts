/** Finds the volumes that a create request mounts, and the node on which they are. */

import { AppError } from "../../shared/http/errors.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Build } from "../store/builds/record.ts";
import type { VolumeMount } from "../store/volumes/record.ts";
import type { VolumeStore } from "../store/volumes/volumes.ts";
import { faultsOf, type WantedMount } from "./mount-paths.ts";

export interface Mounts {
  readonly volumeMounts: readonly VolumeMount[];
  /** The node that has them; undefined: there are none. */
  readonly nodeId: string | undefined;
}

interface MountsDeps {
  readonly volumes: VolumeStore;
  readonly nodes: Nodes;
}

export type ResolveMounts = (projectId: string, wanted: readonly WantedMount[]) => Promise<Mounts>;

const NONE: Mounts = { volumeMounts: [], nodeId: undefined };

export function createResolveMounts({ volumes, nodes }: MountsDeps): ResolveMounts {
  const unreachable = (nodeId: string) => {
    const status = nodes.get(nodeId)?.status;
    return status === undefined || status === "unhealthy";
  };

  /** @throws {AppError} bad_request that names every wrong entry by its index */
  return async (projectId, wanted) => {
    if (wanted.length === 0) return NONE;
    const all = await volumes.list(projectId);
    const known = new Map(all.map((volume) => [volume.name, volume]));
    /** A volume is mounted by its name. */
    const nameOf = (id: string) => all.find((volume) => volume.id === id.toLowerCase())?.name;
    const found = wanted.map(({ name }) => known.get(name));
    const home = found.find((volume) => volume !== undefined)?.nodeId;
    const wrong = faultsOf(wanted).flatMap(({ ofName, ofPath }, index) => {
      const asId = nameOf(wanted[index]?.name ?? "");
      const at = `'volumeMounts.${index}`;
      const volume = found[index];
      const faults: string[] = [];
      if (ofName !== undefined) faults.push(`${at}.name' ${ofName}`);
      else if (volume === undefined && asId !== undefined)
        faults.push(`${at}.name' is the id of a volume: write its name '${asId}'`);
      else if (volume === undefined) faults.push(`${at}.name' names no volume of the project`);
      else if (volume.nodeId !== home)
        faults.push(`${at}.name' names a volume of another node than the first one; volumes are on one node only`);
      else if (unreachable(volume.nodeId))
        faults.push(`${at}.name' names a volume whose node ${volume.nodeId} does not answer`);
      if (ofPath !== undefined) faults.push(`${at}.path' ${ofPath}`);
      return faults;
    });
    if (wrong.length > 0) throw new AppError("bad_request", `body field ${wrong.join("; ")}`);
    const volumeMounts = wanted.map(({ name, path }, index) => ({ volumeId: found[index]?.id ?? "", name, path }));
    return { volumeMounts, nodeId: home };
  };
}

/**
 * Mounts of a sandbox that starts from this build, and whether its stored memory can be restored: only with the same mounts
 * that it was stored with. @throws {AppError} bad_request
 */
export function mountsFrom(
  build: Pick<Build, "kind" | "nodeId" | "memory" | "snapshotId" | "volumeMounts">,
  asked: Mounts,
  body: { readonly volumeMounts?: unknown; readonly memory?: boolean | undefined },
): Mounts & { readonly memory: boolean } {
  const memory = body.memory ?? true;
  if (body.volumeMounts === undefined) {
    return { volumeMounts: build.volumeMounts, nodeId: build.nodeId, memory };
  }
  if (asked.nodeId !== undefined && build.nodeId !== undefined && asked.nodeId !== build.nodeId) {
    throw new AppError(
      "bad_request",
      `body field 'volumeMounts': the volumes are on node ${asked.nodeId}, and the template or snapshot on ` +
        `node ${build.nodeId}; volumes are not reachable from other nodes`,
    );
  }
  const nodeId = asked.nodeId ?? build.nodeId;
  const { volumeMounts } = asked;
  const hasMemory = build.memory && (build.kind !== "template" || build.snapshotId !== undefined);
  if (!hasMemory || isSame(volumeMounts, build.volumeMounts)) return { volumeMounts, nodeId, memory };
  // A template's memory is a faster start of the same; a snapshot's memory is what its owner wants back.
  if (memory && (build.kind !== "template" || body.memory === true)) {
    throw new AppError(
      "bad_request",
      "body field 'volumeMounts': stored memory can only be restored with the volumes that it was stored with; leave the " +
        "field out, or start from the disk alone (memory: false)",
    );
  }
  return { volumeMounts, nodeId, memory: false };
}

function isSame(some: readonly VolumeMount[], others: readonly VolumeMount[]): boolean {
  const key = (mounts: readonly VolumeMount[]) =>
    mounts
      .map(({ volumeId, path }) => `${volumeId} ${path}`)
      .sort()
      .join("\n");
  return key(some) === key(others);
}

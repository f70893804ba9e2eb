/** Where a stored snapshot is, and what the loss of its node means for it. Pure. */

import type { Place, Upload } from "../../shared/api/stored/place.ts";
import type { NodeView } from "../nodes/entry.ts";

export interface Stored {
  readonly kind: "paused" | "snapshot";
  readonly snapshotId: string;
  /** The node that has it; undefined: it is known by its place in the store only. */
  readonly nodeId: string | undefined;
  readonly inStore: boolean;
  readonly hasVolumes: boolean;
}

const MIB = 1024 ** 2;
const FAILED = "the last try failed, and the platform's operators see why";

/** @param node the one that has it, as this orchestrator knows it; undefined: it does not */
export function placeOf(stored: Stored, node: NodeView | undefined): Place {
  const { snapshotId, nodeId, inStore } = stored;
  const upload = inStore ? null : forOwner(uploadOf(snapshotId, node));
  return {
    nodeID: nodeId ?? null,
    inStore,
    upload,
    ifNodeIsLost: lossOf(stored) ?? `it is lost with the node: ${whyOnlyThere(upload, node)}`,
  };
}

/** Undefined: it is on the node only. */
function lossOf({ kind, inStore, hasVolumes }: Stored): string | undefined {
  // It does not start without them.
  if (kind === "paused" && hasVolumes) return "it is lost with the node, which has the volumes that it mounts";
  if (!inStore) return undefined;
  return hasVolumes
    ? "it stays in the blob store, and the volumes that it mounts are lost"
    : "it starts on another node, from the blob store";
}

/** The reason may name the platform's store, which is the operators' own. */
function forOwner(upload: Upload | null): Upload | null {
  return upload === null || upload.failure === null ? upload : { ...upload, failure: FAILED };
}

/** How far its node is with the upload, by its last report; null: it is not on its way. */
export function uploadOf(snapshotId: string, node: NodeView | undefined): Upload | null {
  const found = node?.load.uploads?.find((each) => each.snapshotId === snapshotId);
  if (found === undefined) return null;
  return { doneBytes: found.doneBytes, totalBytes: found.totalBytes, failure: found.failure ?? null };
}

function whyOnlyThere(upload: Upload | null, node: NodeView | undefined): string {
  if (upload !== null && upload.failure !== null) return "its upload to the blob store failed, and is tried again";
  if (upload !== null)
    return `its upload to the blob store is under way (${mib(upload.doneBytes)} of ${mib(upload.totalBytes)} MiB)`;
  if (node?.facts.capabilities.blobStore !== true) return "it is there only, and the node has no blob store";
  return "it is there only, and not in the blob store";
}

function mib(bytes: number): number {
  return Math.ceil(bytes / MIB);
}

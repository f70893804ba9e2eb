/** What nodes are told about the packing of new blobs: zstd only while every node of the platform reads it. */

import { ENCODINGS_DETAIL, readsZstd } from "../../../shared/agent-api/blobs/encodings.ts";
import type { Nodes } from "../../nodes/nodes.ts";

/** A thousand nodes report two hundred times a second. */
const LOOK_MS = 5_000;

interface BlobPackingDeps {
  readonly nodes: Pick<Nodes, "list">;
  readonly now: () => number;
}

/**
 * Nodes that are away count until they are removed: they come back with the version that they had. An older one that joins
 * within seconds of an upload says of its blobs that it does not know their encoding.
 */
export function createBlobPacking({ nodes, now }: BlobPackingDeps): () => boolean {
  const last = { lookedAt: Number.NEGATIVE_INFINITY, zstd: false };
  return () => {
    const at = now();
    // Also after the clock was set back.
    if (Math.abs(at - last.lookedAt) >= LOOK_MS) {
      last.lookedAt = at;
      last.zstd = nodes.list().every(({ facts }) => readsZstd(facts.capabilities.detail[ENCODINGS_DETAIL]));
    }
    return last.zstd;
  };
}

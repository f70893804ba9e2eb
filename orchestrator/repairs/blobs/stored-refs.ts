/** Records the references of what nodes report as uploaded, at their first report: snapshots, and images and memories of templates. */

import type { Beyond, Heartbeat } from "../../../shared/agent-api/routes.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { OfNodes } from "../../nodes/of-nodes.ts";
import type { BlobRefStore } from "../../store/storage/blob-refs.ts";

export interface StoredRefs {
  /**
   * Resolves to what its node has to upload again: snapshots, and images by their builds.
   * @param wanted snapshots that a record names
   */
  heard(report: Reported, wanted: ReadonlySet<string>): Promise<string[]>;
  /** The projects of the builds whose node does not know them. */
  owners(report: Reported): Promise<Readonly<Record<string, string>> | undefined>;
}

interface Reported extends Pick<Heartbeat, "node" | "snapshots"> {
  readonly load: Pick<Heartbeat["load"], "images">;
}

type Uploaded = Parameters<BlobRefStore["record"]>[0][number];

export function createStoredRefs({
  refs,
  known,
  log,
}: {
  readonly refs: Pick<BlobRefStore, "record" | "owners">;
  /** What was recorded of each node's last report: `<id> <reference>`. */
  readonly known: Pick<OfNodes<ReadonlySet<string>>, "get" | "set">;
  readonly log: Log;
}): StoredRefs {
  return {
    async heard(report, wanted) {
      const { nodeId } = report.node;
      const before = known.get(nodeId) ?? new Set();
      const uploaded = uploadedOf(report, wanted);
      const key = ({ id, ref }: Uploaded) => `${id} ${ref}`;
      const fresh = uploaded.filter((each) => !before.has(key(each)));
      if (fresh.length === 0 && uploaded.length === before.size) return [];
      const { recorded, late } = await refs.record(fresh);
      for (const { id, ref, bytes } of fresh)
        if (recorded.has(id)) log.info({ nodeId, id, ref, bytes }, "a snapshot or an image is in the blob store");
      for (const id of late)
        log.warn({ nodeId, id }, "the reference of an uploaded snapshot or image came too late: it is uploaded again");
      const kept = uploaded.filter((each) => before.has(key(each)) || recorded.has(each.id));
      known.set(nodeId, new Set(kept.map(key)));
      return [...late];
    },

    async owners({ load: { images = [] } }) {
      const ids = images.flatMap(({ buildId, ownerless }) => (ownerless === true ? [buildId] : []));
      const found = ids.length === 0 ? undefined : await refs.owners(ids);
      return found === undefined || found.size === 0 ? undefined : Object.fromEntries(found);
    },
  };
}

function uploadedOf({ snapshots, load: { images = [] } }: Reported, wanted: ReadonlySet<string>): Uploaded[] {
  const own = snapshots.filter(({ snapshotId }) => wanted.has(snapshotId));
  const all: (readonly [id: string, stored: Beyond | undefined])[] = [
    ...own.map(({ snapshotId, stored }) => [snapshotId, stored] as const),
    ...images.map(({ buildId, stored }) => [buildId, stored] as const),
    ...images.flatMap(({ memory }) => (memory === undefined ? [] : [[memory.snapshotId, memory.stored] as const])),
  ];
  return all.flatMap(([id, stored]) => (stored !== undefined && "ref" in stored ? [{ id, ...stored }] : []));
}

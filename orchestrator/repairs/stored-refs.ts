/** Records the references of snapshots that nodes report as uploaded, at their first report. */

import type { Heartbeat } from "../../shared/agent-api/routes.ts";
import type { Log } from "../../shared/program/log.ts";
import type { BlobRefStore } from "../store/storage/blob-refs.ts";

export interface StoredRefs {
  /**
   * Resolves to the snapshots that their node has to upload again.
   * @param wanted snapshots that a record names
   */
  heard(report: Pick<Heartbeat, "node" | "snapshots">, wanted: ReadonlySet<string>): Promise<string[]>;
}

export function createStoredRefs({
  refs,
  log,
}: {
  readonly refs: Pick<BlobRefStore, "record">;
  readonly log: Log;
}): StoredRefs {
  /** What was recorded of each node's last report: `<snapshot id> <reference>`. */
  const known = new Map<string, ReadonlySet<string>>();
  return {
    async heard({ node: { nodeId }, snapshots }, wanted) {
      const before = known.get(nodeId) ?? new Set();
      const uploaded = snapshots.flatMap(({ snapshotId, stored }) =>
        stored !== undefined && "ref" in stored && wanted.has(snapshotId) ? [{ snapshotId, ...stored }] : [],
      );
      const key = ({ snapshotId, ref }: (typeof uploaded)[number]) => `${snapshotId} ${ref}`;
      const fresh = uploaded.filter((each) => !before.has(key(each)));
      if (fresh.length === 0 && uploaded.length === before.size) return [];
      const { recorded, late } = await refs.record(fresh);
      for (const { snapshotId, ref, bytes } of fresh)
        if (recorded.has(snapshotId)) log.info({ nodeId, snapshotId, ref, bytes }, "a snapshot is in the blob store");
      for (const snapshotId of late)
        log.warn({ nodeId, snapshotId }, "the reference of an uploaded snapshot came too late: it is uploaded again");
      const kept = uploaded.filter((each) => before.has(key(each)) || recorded.has(each.snapshotId));
      known.set(nodeId, new Set(kept.map(key)));
      return [...late];
    },
  };
}

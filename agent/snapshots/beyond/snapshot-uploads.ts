/** Which snapshots of this node go to the blob store: named ones and the memory of templates always, paused sandboxes where the operator wants it. */

import type { Snapshot } from "../../store/snapshots.ts";
import type { Stores } from "../../store/stores.ts";
import { toUpload } from "./upload-plan.ts";
import { type UploadSnapshotDeps, uploadSnapshot } from "./upload-snapshot.ts";
import type { Subjects } from "./uploads.ts";

export interface SnapshotUploadsDeps {
  readonly stores: Pick<Stores, "snapshots" | "builds">;
  /** Paused sandboxes too. */
  readonly paused: boolean;
  readonly upload: UploadSnapshotDeps;
  /** Another node reads the snapshot at the moment: it is on its way there, and its sandbox waits for it. */
  readonly isRead: (snapshotId: string) => boolean;
}

export function snapshotUploads({ stores, paused, upload, isRead }: SnapshotUploadsDeps): Subjects<Snapshot> {
  return {
    kind: "snapshots",
    name: (id) => `snapshot ${id}`,
    all: () => stores.snapshots.all(),
    get: (id) => stores.snapshots.get(id),
    wanted: (snapshot) => toUpload(snapshot, { paused, build: stores.builds.get(snapshot.executionId)?.state }),
    // An upload would read and compress the same files beside it.
    rests: ({ id, state, resuming }) => state === "stored" && !resuming && !isRead(id),
    // A fork may wait for long for its last copies.
    isPassing: ({ id }) =>
      upload.files.manifest(id).then(
        ({ boot }) => boot !== undefined,
        // The upload fails with the reason.
        () => false,
      ),
    bytes: ({ memoryBytes, diskBytes }) => memoryBytes + diskBytes,
    logged: ({ id, sandboxId }) => ({ snapshotId: id, sandboxId }),
    upload: (snapshot, store, options) => uploadSnapshot(snapshot, store, upload, options),
  };
}

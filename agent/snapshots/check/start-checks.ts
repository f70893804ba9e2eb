/** Constructs the checks of what is stored: on this node, or in the blob store. */

import type { ClaimedStore } from "../../blobs/claimed-store.ts";
import type { Blobs } from "../../blobs/host-blobs.ts";
import { createReader, storeSource } from "../../blobs/sources.ts";
import type { SandboxMachine } from "../../sandboxes/machine.ts";
import type { Stores } from "../../store/stores.ts";
import { imageOfBuild } from "../beyond/held-images.ts";
import type { Memory } from "../take/host-memory.ts";
import { createSnapshotChecks, type SnapshotChecks } from "./checks.ts";
import { createImageReads } from "./image-reads.ts";
import { checkNodeCopy } from "./node-copy.ts";
import { checkStoreCopy, checkStoredImage } from "./store-copy.ts";

interface StartChecksDeps {
  readonly machine: Pick<SandboxMachine, "docker"> & { readonly blobs: Blobs; readonly memory: Pick<Memory, "files"> };
  readonly stores: Stores;
  readonly blobStore: ClaimedStore;
  readonly now: () => number;
}

export function startChecks({ machine, stores, blobStore, now }: StartChecksDeps): SnapshotChecks {
  const { blobs, docker, memory } = machine;
  const { containers } = docker;
  const images = createImageReads(containers, now);
  return createSnapshotChecks({
    isHere: ({ snapshotId: id, template }) =>
      (template === true ? imageOfBuild(id, stores) : stores.snapshots.get(id)) !== undefined,
    async check({ snapshotId: id, stored, template }, options) {
      if (stored !== undefined) {
        const sources = [storeSource(blobStore.use())];
        const reader = createReader({ sources, codec: blobs.codec(stored.projectId), now });
        const from = { reader, transfers: blobs.transfers };
        return template === true
          ? [await checkStoredImage(stored.ref, from, options)]
          : checkStoreCopy(stored.ref, from, options);
      }
      if (template === true)
        return [await images.check({ image: imageOfBuild(id, stores) ?? "", absent: "missing" }, options)];
      const { snapshots } = stores;
      return checkNodeCopy(id, { files: memory.files, containers, images, snapshots }, options);
    },
  });
}

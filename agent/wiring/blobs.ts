/** Constructs what watches the blob store of the settings, and what collects its garbage. */

import { rm } from "node:fs/promises";
import { type ClaimedStore, createClaimedStore } from "../blobs/claimed-store.ts";
import { type Collecting, createCollecting } from "../blobs/collecting.ts";
import type { Base } from "./base.ts";

export interface BlobParts {
  readonly store: ClaimedStore;
  readonly collecting: Collecting;
}

export async function createBlobParts({ machine, stores, events, now, log, teardown }: Base): Promise<BlobParts> {
  // What an agent that was killed had unpacked.
  await rm(machine.blobs.work, { recursive: true, force: true });
  teardown.add("connections to the blob store", () => machine.blobs.close());
  const store = createClaimedStore({
    store: machine.blobs.store,
    owner: () => stores.served.get()?.storeId,
    used: stores.blobStores,
    onChange: () => void events.emit("changed"),
    log,
  });
  teardown.add("blob store", () => store.stop());
  const collecting = createCollecting({ store, blobs: machine.blobs, now, log });
  teardown.add("garbage of the blob store", () => collecting.stop());
  return { store, collecting };
}

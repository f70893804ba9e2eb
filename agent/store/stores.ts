/** All tables of one file, opened and closed together. */

import { type CopyStore, copyStore } from "./beyond/copies.ts";
import { type UploadStore, uploadStore } from "./beyond/uploads.ts";
import { type BlobStoreStore, blobStoreStore } from "./blob-stores.ts";
import { type BuildStore, buildStore } from "./builds.ts";
import { type ContainerStore, containerStore } from "./containers.ts";
import { openDatabase } from "./database/database.ts";
import type { NodeSeal } from "./database/seal-key.ts";
import { type ExecutionStore, executionStore } from "./executions.ts";
import { type LayerStore, layerStore } from "./layers.ts";
import { type LeaseStore, leaseStore } from "./lease.ts";
import { type LogStore, logStore } from "./logs.ts";
import { type NetworkLogStore, networkLogStore } from "./network-log.ts";
import { type RemainsStore, remainsStore } from "./remains.ts";
import { renewSealed } from "./renewal.ts";
import { type SampleStore, sampleStore } from "./samples.ts";
import { type ServedStoreStore, servedStoreStore } from "./served-store.ts";
import { type SnapshotStore, snapshotStore } from "./snapshots.ts";

export interface Stores {
  readonly containers: ContainerStore;
  readonly executions: ExecutionStore;
  readonly samples: SampleStore;
  readonly logs: LogStore;
  readonly snapshots: SnapshotStore;
  readonly networkLog: NetworkLogStore;
  readonly builds: BuildStore;
  readonly layers: LayerStore;
  readonly served: ServedStoreStore;
  readonly lease: LeaseStore;
  readonly remains: RemainsStore;
  readonly blobStores: BlobStoreStore;
  /** Of snapshots. */
  readonly uploads: UploadStore;
  readonly imageUploads: UploadStore;
  readonly copies: CopyStore;
  close(): void;
}

export function openStores(path: string, sealing: NodeSeal): Stores {
  const database = openDatabase(path);
  renewSealed(database, sealing);
  return {
    containers: containerStore(database, sealing),
    executions: executionStore(database, sealing),
    samples: sampleStore(database),
    logs: logStore(database),
    snapshots: snapshotStore(database, sealing),
    networkLog: networkLogStore(database),
    builds: buildStore(database),
    layers: layerStore(database),
    served: servedStoreStore(database),
    lease: leaseStore(database),
    remains: remainsStore(database),
    blobStores: blobStoreStore(database),
    uploads: uploadStore(database, "snapshots"),
    imageUploads: uploadStore(database, "images"),
    copies: copyStore(database),
    close: () => void database.close(),
  };
}

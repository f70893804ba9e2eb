/** The blob store of the settings, and what uploads need of this machine. */

import { join } from "node:path";
import { readPrevious } from "../../shared/program/previous.ts";
import { type AgentConfig, readBlobPlace } from "../config.ts";
import { runCommand } from "../host/command.ts";
import { nativeProgram } from "../host/native-program.ts";
import { type BlobCodec, createCodec } from "./content/codec.ts";
import type { Packing } from "./content/packing.ts";
import { directoryStore } from "./stores/directory.ts";
import { s3Store } from "./stores/s3.ts";
import type { BlobStore } from "./stores/store.ts";
import { countedStore, createTraffic, type Traffic } from "./traffic.ts";
import { createTransfers, type Transfers } from "./transfers.ts";
import { type FindExtents, hostExtents } from "./trees/extents.ts";

export interface Blobs {
  /** Undefined: the operator has set none. */
  readonly store: BlobStore | undefined;
  /** Names and seals the content of one project. */
  codec(projectId: string): BlobCodec;
  readonly extents: FindExtents;
  /** The limit of all uploads and downloads of this node together. */
  readonly transfers: Transfers;
  readonly traffic: Traffic;
  /** What the orchestrator last said: whether each node of the platform reads zstd. Until then, deflate is written. */
  everyNodeReadsZstd(every: boolean): void;
  /** Directory for what is unpacked on its way; nothing in it outlives the agent. */
  readonly work: string;
  /** Ends the store's connections. */
  close(): Promise<void>;
}

export function hostBlobs(config: AgentConfig): Blobs {
  const { blobKey, blobKeyPrevious, runDir, stateDir } = config;
  const place = readBlobPlace(config);
  const s3 = place?.is === "s3" ? s3Store(place.at, place.secrets) : undefined;
  const keys = [...(blobKey === undefined ? [] : [blobKey]), ...readPrevious(blobKeyPrevious)];
  const store = place?.is === "directory" ? directoryStore(place.directory) : s3;
  const traffic = createTraffic();
  let packing: Packing = "deflate";
  return {
    store: store === undefined ? undefined : countedStore(store, traffic),
    traffic,
    codec: (projectId) => createCodec({ keys, domain: projectId, packing: () => packing }),
    everyNodeReadsZstd(every) {
      packing = every ? "zstd" : "deflate";
    },
    extents: hostExtents(runCommand, () => nativeProgram(runCommand, "blobs/trees/svc-extents", runDir)),
    transfers: createTransfers(),
    work: join(stateDir, "unpacked"),
    async close() {
      await s3?.close();
    },
  };
}

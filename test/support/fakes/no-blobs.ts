/** A machine whose operator has set no blob store. */

import type { ClaimedStore } from "../../../agent/blobs/claimed-store.ts";
import { BlobError } from "../../../agent/blobs/content/blob-error.ts";
import { createCodec } from "../../../agent/blobs/content/codec.ts";
import type { Blobs } from "../../../agent/blobs/host-blobs.ts";
import { createTraffic } from "../../../agent/blobs/traffic.ts";
import { createTransfers } from "../../../agent/blobs/transfers.ts";

export const noBlobs: Blobs = {
  store: undefined,
  codec: (domain) => createCodec({ keys: [], domain }),
  extents: (_path, size) => Promise.resolve([{ at: 0, length: size }]),
  transfers: createTransfers(),
  traffic: createTraffic(),
  everyNodeReadsZstd: () => undefined,
  work: "/nowhere",
  close: () => Promise.resolve(),
};

export const noBlobStore: ClaimedStore = {
  name: undefined,
  use() {
    throw new BlobError("unreachable", "this node has no blob store");
  },
  findings: () => [],
  start: () => undefined,
  stop: () => Promise.resolve(),
};

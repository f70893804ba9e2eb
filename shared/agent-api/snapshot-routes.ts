/** Routes of the agent about snapshots: those that it takes, deletes and fetches, and the garbage of the blob store. */

import { Type } from "typebox";
import { contract } from "../http/contract.ts";
import { closed, SnapshotId } from "./shapes.ts";
import {
  Arrival,
  CollectBlobs,
  FetchImageBody,
  FetchSnapshotBody,
  Offer,
  OfferImageBody,
  TakenSnapshot,
  TakeSnapshotBody,
} from "./snapshot-shapes.ts";

/** About half a million references. */
const MAX_REFERENCES_BYTES = 64 * 1024 * 1024;

const byBuild = Type.Object({ buildId: Type.String({ format: "uuid" }) }, closed);
const byExecution = Type.Object({ executionId: Type.String({ format: "uuid" }) }, closed);

export const snapshotRoutes = contract({
  pauseExecution: {
    method: "POST",
    path: "/v1/executions/{executionId}/pause",
    summary: "Pause an execution to a durable snapshot; its route ends before the answer; a failure leaves it running",
    tag: "Executions",
    access: "node",
    params: byExecution,
    body: TakeSnapshotBody,
    status: 200,
    reply: TakenSnapshot,
  },
  checkpointExecution: {
    method: "POST",
    path: "/v1/executions/{executionId}/checkpoint",
    summary: "Take a durable snapshot of a running execution, which keeps running",
    tag: "Executions",
    access: "node",
    params: byExecution,
    body: TakeSnapshotBody,
    status: 200,
    reply: TakenSnapshot,
  },
  deleteSnapshot: {
    method: "DELETE",
    path: "/v1/snapshots/{snapshotId}",
    summary: "Remove a snapshot: memory, image, and the container of a paused sandbox; an unknown snapshot is success",
    tag: "Executions",
    access: "node",
    params: Type.Object({ snapshotId: SnapshotId }, closed),
    status: 204,
  },
  fetchSnapshot: {
    method: "PUT",
    path: "/v1/snapshots/{snapshotId}",
    summary:
      "Fetch a snapshot from another node or the blob store, in the background; repeating it tells how far it is",
    tag: "Executions",
    access: "node",
    params: Type.Object({ snapshotId: SnapshotId }, closed),
    body: FetchSnapshotBody,
    status: 200,
    reply: Arrival,
  },
  offerSnapshot: {
    method: "POST",
    path: "/v1/snapshots/{snapshotId}/offer",
    summary: "Let other nodes read a snapshot from this one for a time; repeating it tells how far its description is",
    tag: "Executions",
    access: "node",
    params: Type.Object({ snapshotId: SnapshotId }, closed),
    status: 200,
    reply: Offer,
  },
  offerImage: {
    method: "POST",
    path: "/v1/builds/{buildId}/offer",
    summary: "Let other nodes read the image of a build from this one for a time; repeating it tells how far it is",
    tag: "Builds",
    access: "node",
    params: byBuild,
    body: OfferImageBody,
    status: 200,
    reply: Offer,
  },
  fetchImage: {
    method: "PUT",
    path: "/v1/builds/{buildId}/image",
    summary:
      "Fetch the image of a build from another node or the blob store, in the background; repeating it tells how far it is",
    tag: "Builds",
    access: "node",
    params: byBuild,
    body: FetchImageBody,
    status: 200,
    reply: Arrival,
  },
  collectBlobs: {
    method: "POST",
    path: "/v1/blobs/collect",
    summary: "Delete from the blob store what none of these references needs, in the background",
    tag: "Executions",
    access: "node",
    body: CollectBlobs,
    maxBodyBytes: MAX_REFERENCES_BYTES,
    status: 202,
  },
});

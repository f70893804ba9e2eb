/** The operators' report of what could be freed. */

import { type Static, Type } from "typebox";
import { contract } from "../http/contract.ts";
import { nullable, Timestamp } from "./common.ts";
import { NodeStatus } from "./nodes/nodes.ts";
import { Upload } from "./stored/place.ts";
import { volumeName } from "./volumes/volumes.ts";

const Item = Type.Object({
  kind: Type.Enum(["paused", "snapshot"]),
  id: Type.String({ description: "Of the paused sandbox, or of the snapshot as events name it" }),
  templateID: Type.String({ description: "Of a snapshot: `DELETE /templates/{templateID}` of its project deletes it" }),
  nodeID: nullable(Type.String({ description: "The node that has it" })),
  inStore: Type.Boolean({ description: "It is in the blob store too, and outlives the node" }),
  upload: nullable(Upload),
  storedBytes: nullable(Type.Integer({ description: "Memory and disk; null until the node has reported them" })),
  unusedSince: Timestamp,
  inUse: Type.Boolean({ description: "A sandbox that was started from the snapshot has not ended" }),
  expiresAt: nullable(Timestamp),
});

const Garbage = Type.Object(
  {
    memory: Type.Array(Type.Object({ snapshotID: Type.String(), bytes: nullable(Type.Integer()) })),
    images: Type.Array(Type.Object({ image: Type.String(), snapshotID: Type.String() })),
    buildImages: Type.Array(Type.String()),
    layers: Type.Array(Type.Object({ image: Type.String(), bytes: Type.Integer() })),
  },
  {
    description: "What no record references, as `agent --garbage` lists it; the node deletes it when it is old enough",
  },
);

const UnknownVolume = Type.Object({ volumeID: Type.String(), sizeMB: Type.Integer(), usedBytes: Type.Integer() });

const StoredTemplate = Type.Object({
  templateID: Type.String(),
  buildID: Type.String(),
  teamID: Type.String(),
  nodeID: nullable(Type.String({ description: "The node that built it" })),
  heldBy: Type.Array(Type.String(), { description: "The nodes that have its image, by their last reports" }),
  inStore: Type.Boolean({
    description:
      "Its image is in the blob store, and outlives these nodes; otherwise it has to be built again when they are lost",
  }),
  hasMemory: Type.Boolean({ description: "Sandboxes start as copies of its memory" }),
  memoryInStore: Type.Boolean(),
  upload: nullable(Upload),
});

export const StorageReport = Type.Object({
  nodes: Type.Array(
    Type.Object({
      nodeID: Type.String(),
      status: NodeStatus,
      storedBytes: Type.Integer({ description: "Memory and disks of snapshots and paused sandboxes" }),
      quotaBytes: Type.Integer({ description: "The node's quota of stored snapshots; 0: no quota" }),
      error: nullable(Type.String({ description: "The reason why the node listed nothing" })),
      garbage: nullable(Garbage),
      unknownVolumes: Type.Array(UnknownVolume, {
        description:
          "Volumes that no record names. They stay until an operator gives them to a project or removes them",
      }),
      missingVolumes: Type.Array(Type.String(), {
        description: "Ids of volumes that the node should have and has not",
      }),
    }),
  ),
  projects: Type.Array(
    Type.Object({
      teamID: Type.String(),
      name: Type.String(),
      storedBytes: Type.Integer({ description: "On all nodes, with what snapshots under way may fill" }),
      quotaBytes: Type.Integer({ description: "The project's quota over all nodes; 0: no quota" }),
      pausedCount: Type.Integer(),
      snapshotCount: Type.Integer(),
      expiringSoon: Type.Array(Item, { description: "The first ten that expire within a day" }),
      largest: Type.Array(Item, { description: "The ten largest" }),
    }),
    { description: "Projects that store something" },
  ),
  templates: Type.Array(StoredTemplate, { description: "Builds of templates that sandboxes start from" }),
});
export type StorageReport = Static<typeof StorageReport>;

export const storageApi = contract({
  readStorage: {
    tag: "Admin",
    access: "admin",
    method: "GET",
    path: "/admin/storage",
    summary: "What could be freed: by node what no record references, by project what expires soon and what is largest",
    status: 200,
    reply: StorageReport,
    errors: [401],
  },
});

const unknown = {
  tag: "Admin",
  access: "admin",
  path: "/admin/nodes/{nodeID}/volumes/{volumeID}",
  params: Type.Object({ nodeID: Type.String(), volumeID: Type.String({ format: "uuid" }) }),
  errors: [401, 404, 409, 503],
} as const;

export const unknownVolumeApi = contract({
  adoptVolume: {
    ...unknown,
    method: "POST",
    summary: "Give a volume of a node that no record names to a project",
    body: Type.Object({ teamID: Type.String(), name: volumeName }),
    status: 201,
    reply: Type.Object({ volumeID: Type.String(), name: Type.String() }),
  },
  deleteUnknownVolume: {
    ...unknown,
    method: "DELETE",
    summary: "Delete a volume of a node that no record names, with its files",
    status: 204,
  },
});

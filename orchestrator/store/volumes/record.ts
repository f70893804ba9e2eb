/** The tables of volumes and of what mounts them, and their mounts in the rows of sandboxes and of snapshots' builds. */

import { list, number, type RecordOf, type RowOf, table, text } from "../codec.ts";

export const volumeTable = table(
  {
    id: text("id"),
    projectId: text("project_id"),
    name: text("name"),
    /** The only node that has its files. */
    nodeId: text("node_id"),
    sizeMb: number("size_mb"),
    /** `creating` until its node has made it; `deleting` until its node has deleted it, and then there is no row. */
    state: text("state").as<"creating" | "ready" | "deleting">(),
  },
  { createdAt: number("created_at"), updatedAt: number("updated_at") },
);

export type Volume = RecordOf<typeof volumeTable>;
export type VolumeRow = RowOf<typeof volumeTable>;

/** What mounts a volume: a sandbox, or the build of a snapshot. Those of sandboxes that have ended do not count. */
export interface VolumeUseRow {
  readonly volume_id: string;
  readonly sandbox_id: string | null;
  readonly build_id: string | null;
}

/** A volume in a sandbox. */
export interface VolumeMount {
  readonly volumeId: string;
  readonly name: string;
  readonly path: string;
}

export const volumeMounts = list("volume_mounts").as<readonly VolumeMount[]>();

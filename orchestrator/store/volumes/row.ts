/** Columns of volumes, and of their mounts in the rows of sandboxes and of snapshots' builds. */

export interface VolumeRow {
  readonly id: string;
  readonly project_id: string;
  readonly name: string;
  /** The only node that has its files. */
  readonly node_id: string;
  readonly size_mb: number;
  /** `creating` until its node has made it; `deleting` until its node has deleted it, and then there is no row. */
  readonly state: "creating" | "ready" | "deleting";
  readonly created_at: number;
  readonly updated_at: number;
}

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

export function toMounts(column: string | null): readonly VolumeMount[] {
  return column === null ? [] : (JSON.parse(column) as VolumeMount[]);
}

export function fromMounts(mounts: readonly VolumeMount[]): string | null {
  return mounts.length === 0 ? null : JSON.stringify(mounts);
}

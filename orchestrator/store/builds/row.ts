/** Columns of a build row that a node did not build: snapshots, and the platform's own image. */

import type { BuildRow } from "../tables.ts";

export const NOT_BUILT = {
  tags: null,
  body: null,
  with_access: 0,
  settings: null,
  parent_build_id: null,
  snapshot_id: null,
  stored_memory_bytes: null,
  stored_disk_bytes: null,
  started_at: null,
  deadline_at: null,
  accepted: 0,
  log_offset: 0,
  log_characters: 0,
  reason_message: null,
  reason_step: null,
  volume_mounts: null,
} as const satisfies Partial<BuildRow>;

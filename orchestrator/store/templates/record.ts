/** The table of templates. */

import { flag, number, type RecordOf, type RowOf, table, text } from "../codec.ts";

export const templateTable = table({
  id: text("id"),
  /** Undefined: the platform's own, visible to all. */
  projectId: text("project_id").optional(),
  public: flag("public"),
  /** `snapshot`: made by snapshotting sandboxes, not by building; lists of templates omit it. */
  kind: text("kind").as<"template" | "snapshot">(),
  createdAt: number("created_at"),
  updatedAt: number("updated_at"),
  spawnCount: number("spawn_count").initially(0),
  lastSpawnedAt: number("last_spawned_at").later(),
  /** Containers that its owner wants to be kept warm, 0 for none. Undefined: what the demand asks for. */
  warmPool: number("warm_pool").later(),
});

export type Template = RecordOf<typeof templateTable>;
export type TemplateRow = RowOf<typeof templateTable>;

export const toTemplate = templateTable.toRecord;

/** The tables of projects, of the workspaces that group them, and of deletions of projects. */

import { flag, json, number, parts, type RecordOf, type RowOf, table, text } from "../codec.ts";
import { limitFields, type OwnLimits } from "./limits.ts";

/** `disabled`: only reads and deletes; `banned`: no calls; `deleting`: its id is no longer usable. */
export type ProjectStatus = "active" | "disabled" | "banned" | "deleting";

export const projectTable = table({
  /** UUID. */
  id: text("id"),
  /** `prj_…` */
  publicId: text("public_id"),
  name: text("name"),
  slug: text("slug"),
  /** `wrk_…`; undefined until the default workspace exists, which then takes the project. */
  workspaceId: text("workspace_id").optional(),
  /** The only nodes that run its sandboxes are those of this region; undefined: any node. */
  region: text("region").optional(),
  /** Labels that a node must have to run its sandboxes, all of them. */
  nodeLabels: json("node_labels").as<Readonly<Record<string, string>>>().later({}),
  status: text("status").as<ProjectStatus>().initially("active"),
  /** Why it is disabled or banned. */
  statusReason: text("status_reason").later(),
  limits: parts(limitFields).as<OwnLimits>(),
  createdAt: number("created_at"),
});

export type Project = RecordOf<typeof projectTable>;
export type ProjectRow = RowOf<typeof projectTable>;

export const toProject = projectTable.toRecord;

/** Of the column alone. */
export function readNodeLabels(stored: string | null): Project["nodeLabels"] {
  return stored === null ? {} : (JSON.parse(stored) as Project["nodeLabels"]);
}

export const workspaceTable = table({
  /** `wrk_…` */
  id: text("id"),
  name: text("name"),
  isDefault: flag("is_default"),
  createdAt: number("created_at"),
});

export type Workspace = RecordOf<typeof workspaceTable>;
export type WorkspaceRow = RowOf<typeof workspaceTable>;

/** Outlives its project, so that the progress can be read to the end. */
export const projectDeletionTable = table({
  projectId: text("project_id"),
  /** `prj_…` */
  publicId: text("public_id"),
  name: text("name"),
  begunAt: number("begun_at"),
  finishedAt: number("finished_at").later(),
});

export type ProjectDeletion = RecordOf<typeof projectDeletionTable>;
export type ProjectDeletionRow = RowOf<typeof projectDeletionTable>;

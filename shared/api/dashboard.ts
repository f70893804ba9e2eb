/**
 * What E2B's open dashboard reads of templates and builds beside the API: its second base address is this API's with
 * `/dashboard` behind it. Fields and cursors have its forms.
 */

import { Type } from "typebox";
import { contract } from "../http/contract.ts";
import { nullable, TemplateReference, Timestamp } from "./common.ts";

const common = { method: "GET", tag: "Dashboard", access: "project", status: 200 } as const;

const cursor = Type.Optional(Type.String({ maxLength: 512, description: "`nextCursor` of the page before" }));
const nextCursor = nullable(Type.String({ description: "null: there are no more" }));
const limit = (fallback: number, maximum = 100) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum, default: fallback }));

export const BUILD_STATES = ["building", "failed", "success"] as const;
const BuildState = Type.Enum([...BUILD_STATES]);
const buildFacts = {
  status: BuildState,
  finishedAt: nullable(Timestamp),
  statusMessage: nullable(Type.String({ description: "Why it failed" })),
};

const ListedBuild = Type.Object({
  id: Type.String(),
  template: Type.String({ description: "Its first alias, or its id" }),
  templateId: Type.String(),
  ...buildFacts,
  createdAt: Timestamp,
  cpuCount: Type.Integer(),
  memoryMB: Type.Integer(),
  diskSizeMB: nullable(Type.Integer()),
  envdVersion: nullable(Type.String()),
});

export const dashboardBuildApi = contract({
  dashboardBuilds: {
    ...common,
    path: "/dashboard/builds",
    summary: "Builds of the project's templates, newest first",
    query: Type.Object({
      build_id_or_template: Type.Optional(Type.String({ maxLength: 256, description: "Id of a build, or a template" })),
      statuses: Type.Optional(
        Type.String({ maxLength: 64, description: "Comma-separated: building, failed, success; all when left out" }),
      ),
      limit: limit(50),
      cursor,
    }),
    reply: Type.Object({ data: Type.Array(ListedBuild), nextCursor }),
    errors: [400, 401],
  },
  dashboardBuildStatuses: {
    ...common,
    path: "/dashboard/builds/statuses",
    summary: "States of many builds; unknown ones are left out",
    query: Type.Object({
      build_ids: Type.String({ minLength: 1, maxLength: 8192, description: "Comma-separated, at most 100" }),
    }),
    reply: Type.Object({ buildStatuses: Type.Array(Type.Object({ id: Type.String(), ...buildFacts })) }),
    errors: [400, 401],
  },
  dashboardBuild: {
    ...common,
    path: "/dashboard/builds/{build_id}",
    summary: "State of a build, and the names of its template",
    params: Type.Object({ build_id: Type.String({ format: "uuid" }) }),
    reply: Type.Object({ names: nullable(Type.Array(Type.String())), createdAt: Timestamp, ...buildFacts }),
    errors: [400, 401, 404],
  },
});

const templateFacts = {
  templateID: Type.String(),
  buildID: Type.String({ description: "Of the default tag; the zero UUID while it has none" }),
  public: Type.Boolean(),
  aliases: Type.Array(Type.String()),
  names: Type.Array(Type.String()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  lastSpawnedAt: nullable(Timestamp),
  spawnCount: Type.Integer(),
  buildCount: Type.Integer(),
  diskSizeMB: nullable(Type.Integer()),
  envdVersion: nullable(Type.String()),
};

const DefaultTemplate = Type.Object({
  id: Type.String(),
  aliases: Type.Array(Type.Object({ alias: Type.String(), namespace: nullable(Type.String()) })),
  buildId: Type.String(),
  ramMb: Type.Integer(),
  vcpu: Type.Integer(),
  totalDiskSizeMb: nullable(Type.Integer()),
  envdVersion: nullable(Type.String()),
  createdAt: Timestamp,
  public: Type.Boolean(),
  buildCount: Type.Integer(),
  spawnCount: Type.Integer(),
});

const byTemplate = Type.Object({ templateID: TemplateReference });

export const dashboardTemplateApi = contract({
  dashboardTemplates: {
    ...common,
    path: "/dashboard/templates",
    summary: "The project's templates and those with a promoted name",
    query: Type.Object({
      public: Type.Optional(Type.Boolean()),
      search: Type.Optional(Type.String({ maxLength: 256, description: "Part of an id, alias or name" })),
      sort: Type.Optional(Type.Enum(["created_at_asc", "created_at_desc", "updated_at_asc", "updated_at_desc"])),
      limit: limit(50),
      cursor,
    }),
    reply: Type.Object({
      data: Type.Array(
        Type.Object({
          ...templateFacts,
          cpuCount: Type.Integer(),
          memoryMB: Type.Integer(),
          createdBy: Type.Null(),
          isDefault: Type.Boolean({ description: "It has a promoted name" }),
        }),
      ),
      nextCursor,
    }),
    errors: [400, 401],
  },
  dashboardDefaultTemplates: {
    ...common,
    path: "/dashboard/templates/defaults",
    summary: "Templates with a promoted name",
    reply: Type.Object({ templates: Type.Array(DefaultTemplate) }),
    errors: [401],
  },
  dashboardTemplate: {
    ...common,
    path: "/dashboard/templates/{templateID}",
    summary: "A template with its default build",
    params: byTemplate,
    reply: Type.Object({
      ...templateFacts,
      cpuCount: nullable(Type.Integer()),
      memoryMB: nullable(Type.Integer()),
    }),
    errors: [400, 401, 404],
  },
});

const Assignment = Type.Object({
  assignmentId: Type.String(),
  buildId: Type.String(),
  assignedAt: Timestamp,
  buildCreatedAt: Timestamp,
  buildFinishedAt: nullable(Timestamp),
});
const TagText = Type.String({ minLength: 1, maxLength: 128 });

export const dashboardTagApi = contract({
  dashboardTagGroups: {
    ...common,
    path: "/dashboard/templates/{templateID}/tags/groups",
    summary: "Tags of a template with the build that each names; earlier builds of a tag are not kept",
    params: byTemplate,
    query: Type.Object({
      assignmentLimit: limit(6, 25),
      tagsLimit: limit(25),
      tagsCursor: cursor,
      search: Type.Optional(Type.String({ maxLength: 64, pattern: "^[a-z0-9._-]*$" })),
      sort: Type.Optional(Type.Enum(["latest_desc", "latest_asc", "name_asc", "name_desc"])),
    }),
    reply: Type.Object({
      tags: Type.Array(
        Type.Object({ tag: Type.String(), assignments: Type.Array(Assignment), hasMore: Type.Boolean() }),
      ),
      nextCursor,
    }),
    errors: [400, 401, 404],
  },
  dashboardTagCount: {
    ...common,
    path: "/dashboard/templates/{templateID}/tags/count",
    summary: "Number of a template's tags",
    params: byTemplate,
    reply: Type.Object({ total: Type.Integer() }),
    errors: [400, 401, 404],
  },
  dashboardTagExists: {
    ...common,
    path: "/dashboard/templates/{templateID}/tags/exists",
    summary: "Does a template have this tag?",
    params: byTemplate,
    query: Type.Object({ tag: TagText }),
    reply: Type.Object({ exists: Type.Boolean(), normalizedTag: Type.String() }),
    errors: [400, 401, 404],
  },
  dashboardTagAssignments: {
    ...common,
    path: "/dashboard/templates/{templateID}/tags/{tag}/assignments",
    summary: "The build that a tag names; earlier ones are not kept",
    params: Type.Object({ ...byTemplate.properties, tag: TagText }),
    query: Type.Object({ limit: limit(50), cursor }),
    reply: Type.Object({ data: Type.Array(Assignment), nextCursor }),
    errors: [400, 401, 404],
  },
});

export const dashboardHealthApi = contract({
  dashboardHealth: {
    ...common,
    access: "none",
    path: "/dashboard/health",
    summary: "Is the service up?",
    reply: Type.Object({ message: Type.String() }),
  },
});

export const dashboardApi = {
  ...dashboardHealthApi,
  ...dashboardBuildApi,
  ...dashboardTemplateApi,
  ...dashboardTagApi,
};

/** Templates and their tags on the public API, without builds. */

import { type Static, Type } from "typebox";
import { contract } from "../http/contract.ts";
import { byTemplate, messages, nullable, open, page, TeamId, TemplateReference, Timestamp } from "./common.ts";

export const BuildStatus = Type.Enum(["waiting", "building", "ready", "error"]);

export const Template = Type.Object({
  templateID: Type.String(),
  buildID: Type.String(),
  cpuCount: Type.Integer(),
  memoryMB: Type.Integer(),
  diskSizeMB: Type.Integer(),
  public: Type.Boolean(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  createdBy: nullable(Type.Object({ id: Type.String(), email: nullable(Type.String()) })),
  lastSpawnedAt: nullable(Timestamp),
  spawnCount: Type.Integer(),
  buildCount: Type.Integer(),
  envdVersion: Type.String(),
  aliases: Type.Array(Type.String(), { deprecated: true }),
  names: Type.Array(Type.String()),
  buildStatus: BuildStatus,
});
export type Template = Static<typeof Template>;

export const TemplateWithBuilds = Type.Object({
  templateID: Type.String(),
  public: Type.Boolean(),
  aliases: Type.Array(Type.String()),
  names: Type.Array(Type.String()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  lastSpawnedAt: nullable(Timestamp),
  spawnCount: Type.Integer(),
  warmPool: Type.Optional(Type.Integer({ description: "Containers that its owner wants to be kept warm" })),
  builds: Type.Array(
    Type.Object({
      buildID: Type.String(),
      status: BuildStatus,
      createdAt: Timestamp,
      updatedAt: Timestamp,
      finishedAt: Type.Optional(Timestamp),
      cpuCount: Type.Integer(),
      memoryMB: Type.Integer(),
      diskSizeMB: Type.Optional(Type.Integer()),
      envdVersion: Type.Optional(Type.String()),
    }),
  ),
});
export type TemplateWithBuilds = Static<typeof TemplateWithBuilds>;

const teamQuery = { teamID: Type.Optional(TeamId) };
const common = { tag: "Templates", access: "project" } as const;

export const templateApi = contract({
  listTemplatesV1: {
    ...common,
    method: "GET",
    path: "/templates",
    summary: "List templates",
    deprecated: true,
    query: Type.Object(teamQuery),
    status: 200,
    reply: Type.Array(Template),
    errors: [400, 401, 403],
  },
  listTemplates: {
    ...common,
    method: "GET",
    path: "/v2/templates",
    summary: "List templates, a page at a time",
    query: Type.Object({ ...teamQuery, ...page }),
    status: 200,
    reply: Type.Array(Template),
    errors: [400, 401, 403],
  },
  findAlias: {
    ...common,
    method: "GET",
    path: "/templates/aliases/{alias}",
    summary: "Does this name exist?",
    params: Type.Object({ alias: TemplateReference }),
    status: 200,
    reply: Type.Object({ templateID: Type.String(), public: Type.Boolean() }),
    errors: [400, 401, 403, 404],
  },
  getTemplate: {
    ...common,
    method: "GET",
    path: "/templates/{templateID}",
    summary: "Read a template and its builds",
    params: byTemplate,
    query: Type.Object(page),
    status: 200,
    reply: TemplateWithBuilds,
    errors: [400, 401, 403, 404],
  },
});

const publication = Type.Object({ public: Type.Optional(Type.Boolean()) });
/** Of an owner who knows more than the demand of the last hour shows. */
const warmPool = nullable(
  Type.Integer({
    minimum: 0,
    maximum: 1024,
    description:
      "Containers of the default tag that all nodes together keep warm at least, as far as the operator's share of memory allows; 0: none; null: what the demand asks for",
  }),
);

export const templateChangeApi = contract({
  deleteTemplate: {
    ...common,
    method: "DELETE",
    path: "/templates/{templateID}",
    summary: "Delete a template, a tag of it, or a snapshot",
    params: byTemplate,
    status: 204,
    errors: [400, 401, 404],
  },
  updateTemplateV1: {
    ...common,
    method: "PATCH",
    path: "/templates/{templateID}",
    summary: "Publish or unpublish a template",
    deprecated: true,
    params: byTemplate,
    body: publication,
    status: 200,
    errors: [400, 401, 403, 404],
  },
  updateTemplate: {
    ...common,
    method: "PATCH",
    path: "/v2/templates/{templateID}",
    summary: "Publish or unpublish a template; say how many containers of it are kept warm",
    params: byTemplate,
    body: Type.Object({ ...publication.properties, warmPool: Type.Optional(warmPool) }),
    status: 200,
    reply: Type.Object({ names: Type.Array(Type.String()) }),
    errors: [400, 401, 403, 404],
  },
});

const Tag = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: "^[A-Za-z0-9._-]+$",
  ...messages({ pattern: "{field} must be of a-z, A-Z, 0-9, ., _ and -" }),
});
const tags = Type.Array(Tag, { minItems: 1, maxItems: 64 });

export const tagApi = contract({
  assignTags: {
    method: "POST",
    path: "/templates/tags",
    summary: "Put tags on a build",
    tag: "Tags",
    access: "project",
    body: Type.Object({ target: TemplateReference, tags }, open),
    status: 201,
    reply: Type.Object({ tags: Type.Array(Type.String()), buildID: Type.String() }),
    errors: [400, 401, 404],
  },
  deleteTags: {
    method: "DELETE",
    path: "/templates/tags",
    summary: "Take tags off a template",
    tag: "Tags",
    access: "project",
    body: Type.Object({ name: TemplateReference, tags }, open),
    status: 204,
    errors: [400, 401, 404],
  },
  listTags: {
    method: "GET",
    path: "/templates/{templateID}/tags",
    summary: "List the tags of a template",
    tag: "Tags",
    access: "project",
    params: byTemplate,
    status: 200,
    reply: Type.Array(Type.Object({ tag: Type.String(), buildID: Type.String(), createdAt: Timestamp })),
    errors: [401, 404],
  },
});

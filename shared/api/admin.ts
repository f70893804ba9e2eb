/** Routes for operators: keys, clean-up. */

import { Type } from "typebox";
import { contract } from "../http/contract.ts";
import { nullable, Timestamp } from "./common.ts";
import { byTeam, CreatedTeamApiKey, NewKey, TeamApiKey } from "./teams.ts";
import { BuildStatus } from "./templates.ts";

const admin = { tag: "Admin", access: "admin" } as const;

export const adminApi = contract({
  killTeamSandboxes: {
    ...admin,
    method: "POST",
    path: "/admin/teams/{teamID}/sandboxes/kill",
    summary: "Kill every sandbox of a project",
    params: byTeam,
    status: 200,
    reply: Type.Object({ killedCount: Type.Integer(), failedCount: Type.Integer() }),
    errors: [400, 401, 404],
  },
  runningCounts: {
    ...admin,
    method: "GET",
    path: "/admin/sandboxes/running-counts",
    summary: "Running sandboxes by project; projects without any are left out",
    status: 200,
    reply: Type.Record(Type.String(), Type.Integer()),
    errors: [401],
  },
  cancelBuilds: {
    ...admin,
    method: "POST",
    path: "/admin/teams/{teamID}/builds/cancel",
    summary: "Cancel every running build of a project",
    params: byTeam,
    status: 200,
    reply: Type.Object({ cancelledCount: Type.Integer(), failedCount: Type.Integer() }),
    errors: [400, 401, 404],
  },
  collectBuilds: {
    ...admin,
    method: "POST",
    path: "/admin/builds/collect",
    summary:
      "Remove builds that nothing needs, and uploaded files that no build needs; a dry run unless `dryRun` is false",
    body: Type.Object({
      dryRun: Type.Optional(Type.Boolean({ default: true })),
      keepHours: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 87_600,
          description: "Younger ones stay; default: the platform's setting",
        }),
      ),
    }),
    optionalBody: true,
    status: 200,
    reply: Type.Object({
      dryRun: Type.Boolean(),
      builds: Type.Array(
        Type.Object({
          buildID: Type.String(),
          templateID: Type.String(),
          status: BuildStatus,
          nodeID: nullable(Type.String()),
          createdAt: Timestamp,
        }),
      ),
      files: Type.Object({ count: Type.Integer(), bytes: Type.Integer() }),
    }),
    errors: [400, 401],
  },
  promoteTemplate: {
    ...admin,
    method: "POST",
    path: "/admin/templates/promote",
    summary: "Give a template a name that every project can use, publish it, and keep it warm",
    body: Type.Object({
      templateID: Type.String({ minLength: 1, maxLength: 128 }),
      name: Type.String({ pattern: "^[a-z0-9_-]{1,128}$", examples: ["code-interpreter-v1"] }),
    }),
    status: 204,
    errors: [400, 401, 404],
  },
  listTeamKeys: {
    ...admin,
    method: "GET",
    path: "/admin/teams/{teamID}/api-keys",
    summary: "List the API keys of a project, masked",
    params: byTeam,
    status: 200,
    reply: Type.Array(TeamApiKey),
    errors: [400, 401, 404],
  },
  createTeamKey: {
    ...admin,
    method: "POST",
    path: "/admin/teams/{teamID}/api-keys",
    summary: "Create an API key for a project",
    params: byTeam,
    body: NewKey,
    status: 201,
    reply: CreatedTeamApiKey,
    errors: [400, 401, 404],
  },
  deleteTeamKey: {
    ...admin,
    method: "DELETE",
    path: "/admin/teams/{teamID}/api-keys/{apiKeyID}",
    summary: "Revoke an API key of a project, at once",
    params: Type.Object({ ...byTeam.properties, apiKeyID: Type.String({ format: "uuid" }) }),
    status: 204,
    errors: [400, 401, 404],
  },
});

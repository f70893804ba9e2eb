/** Template builds on the public API, and the removed first generation. */

import { Type } from "typebox";
import { contract } from "../http/contract.ts";
import { cpuCount, INT32, LogLevel, logQuery, memoryMB, open, TeamId, TemplateReference, Timestamp } from "./common.ts";
import { BuildStatus } from "./templates.ts";

const Tag = Type.String({ minLength: 1, maxLength: 128 });

const TemplateRequest = Type.Object(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 128, examples: ["my-app"] })),
    alias: Type.Optional(Type.String({ minLength: 1, maxLength: 128, deprecated: true })),
    tags: Type.Optional(Type.Array(Tag, { maxItems: 64 })),
    teamID: Type.Optional(TeamId),
    cpuCount: Type.Optional(cpuCount),
    memoryMB: Type.Optional(memoryMB),
    minFreeDiskMb: Type.Optional(Type.Integer({ minimum: 0, maximum: INT32, description: "MiB free after the build" })),
  },
  open,
);

const BuildEntry = Type.Object({
  timestamp: Timestamp,
  level: LogLevel,
  message: Type.String(),
  step: Type.Optional(Type.String()),
});

const secret = Type.String({ minLength: 1, maxLength: 65_536 });
const Registry = Type.Union([
  Type.Object({ type: Type.Literal("registry"), username: secret, password: secret }),
  Type.Object({ type: Type.Literal("aws"), awsAccessKeyId: secret, awsSecretAccessKey: secret, awsRegion: secret }),
  Type.Object({ type: Type.Literal("gcp"), serviceAccountJson: secret }),
]);

// SDKs leave options of their own in their steps: `forceUpload`, `resolveSymlinks`, `gzip`.
const Step = Type.Object(
  {
    type: Type.String({ minLength: 1, maxLength: 64 }),
    args: Type.Optional(Type.Array(Type.String({ maxLength: 262_144 }), { maxItems: 1024 })),
    filesHash: Type.Optional(Type.String({ pattern: "^[0-9a-f]{64}$" })),
    force: Type.Optional(Type.Boolean()),
  },
  open,
);

const byBuild = Type.Object({ templateID: TemplateReference, buildID: Type.String({ format: "uuid" }) });
const common = { tag: "Templates", access: "project" } as const;

export const buildApi = contract({
  requestBuild: {
    ...common,
    method: "POST",
    path: "/v3/templates",
    summary: "Request the build of a template",
    body: TemplateRequest,
    status: 202,
    reply: Type.Object({
      templateID: Type.String(),
      buildID: Type.String(),
      public: Type.Boolean(),
      aliases: Type.Array(Type.String()),
      names: Type.Array(Type.String()),
      tags: Type.Array(Type.String()),
    }),
    errors: [400, 401, 403, 409],
  },
  requestBuildV2: {
    ...common,
    method: "POST",
    path: "/v2/templates",
    summary: "Request the build of a template",
    deprecated: true,
    body: TemplateRequest,
    status: 202,
    reply: Type.Object({ templateID: Type.String(), buildID: Type.String() }),
    errors: [400, 401],
  },
  buildFiles: {
    ...common,
    method: "GET",
    path: "/templates/{templateID}/files/{hash}",
    summary: "Where to upload the files of a COPY step",
    // The answer is a permission to write.
    scope: "templates",
    params: Type.Object({ templateID: TemplateReference, hash: Type.String({ pattern: "^[0-9a-f]{64}$" }) }),
    status: 201,
    reply: Type.Object({
      present: Type.Boolean(),
      url: Type.Optional(Type.String()),
      headers: Type.Optional(Type.Record(Type.String(), Type.String())),
    }),
    errors: [400, 401, 404],
  },
  startBuild: {
    ...common,
    method: "POST",
    path: "/v2/templates/{templateID}/builds/{buildID}",
    summary: "Start a requested build",
    params: byBuild,
    body: Type.Object(
      {
        fromImage: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
        fromTemplate: Type.Optional(TemplateReference),
        fromImageRegistry: Type.Optional(Registry),
        force: Type.Optional(Type.Boolean()),
        steps: Type.Optional(
          Type.Array(Step, { maxItems: 1024, examples: [[{ type: "RUN", args: ["pip install --user flask"] }]] }),
        ),
        startCmd: Type.Optional(Type.String({ maxLength: 131_072 })),
        readyCmd: Type.Optional(Type.String({ maxLength: 131_072 })),
      },
      open,
    ),
    status: 202,
    errors: [400, 401, 404],
  },
  buildStatus: {
    ...common,
    method: "GET",
    path: "/templates/{templateID}/builds/{buildID}/status",
    summary: "State of a build and its log from an offset",
    params: byBuild,
    query: Type.Object({
      logsOffset: Type.Optional(Type.Integer({ minimum: 0, maximum: INT32 })),
      limit: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
      level: Type.Optional(LogLevel),
    }),
    status: 200,
    reply: Type.Object({
      templateID: Type.String(),
      buildID: Type.String(),
      status: BuildStatus,
      logs: Type.Array(Type.String()),
      logEntries: Type.Array(BuildEntry),
      reason: Type.Optional(
        Type.Object({
          message: Type.String(),
          step: Type.Optional(Type.String()),
          logEntries: Type.Optional(Type.Array(BuildEntry)),
        }),
      ),
    }),
    errors: [400, 401, 404],
  },
  buildLogs: {
    ...common,
    method: "GET",
    path: "/templates/{templateID}/builds/{buildID}/logs",
    summary: "Log of a build from a cursor",
    params: byBuild,
    query: Type.Object({
      ...logQuery,
      limit: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
      source: Type.Optional(Type.Enum(["temporary", "persistent"], { description: "Accepted and ignored" })),
    }),
    status: 200,
    reply: Type.Object({ logs: Type.Array(BuildEntry) }),
    errors: [400, 401, 404],
  },
});

const removed = {
  tag: "Removed",
  access: "none",
  deprecated: true,
  removed: true,
  status: 204,
  errors: [410],
} as const;

/** Routes that were removed: they answer 410 to every caller. */
export const removedApi = contract({
  createTemplateV1: {
    ...removed,
    method: "POST",
    path: "/templates",
    summary: "Removed: first-generation template build",
  },
  rebuildTemplateV1: {
    ...removed,
    method: "POST",
    path: "/templates/{templateID}",
    summary: "Removed: first-generation template build",
  },
  startBuildV1: {
    ...removed,
    method: "POST",
    path: "/templates/{templateID}/builds/{buildID}",
    summary: "Removed: first-generation template build",
  },
  createAccessToken: {
    ...removed,
    method: "POST",
    path: "/access-tokens",
    summary: "Removed: access tokens ended on 1 August 2026",
  },
  deleteAccessToken: {
    ...removed,
    method: "DELETE",
    path: "/access-tokens/{accessTokenID}",
    summary: "Removed: access tokens ended on 1 August 2026",
  },
});

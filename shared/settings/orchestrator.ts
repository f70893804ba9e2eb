/** Settings of the orchestrator. One schema; every name carries its unit. */

import { type Static, Type } from "typebox";
import { LOG_LEVELS } from "../program/log.ts";
import { consoleSettings } from "./console.ts";
import { edgeSettings } from "./edge.ts";
import { identitySettings } from "./identity.ts";
import { nodeSettings } from "./nodes.ts";
import { projectSettings } from "./projects.ts";
import { connections, ms, otlpEndpoint, port, secret } from "./schemas.ts";
import { secretSettings } from "./secrets.ts";
import { webhookSettings } from "./webhooks.ts";

const previous = (description: string) =>
  Type.Optional(
    Type.String({ maxLength: 16_384, description: `${description}, which stay valid: comma-separated, newest first` }),
  );
export const OrchestratorConfig = Type.Object({
  apiHost: Type.String({ default: "127.0.0.1", description: "Address the platform API listens on" }),
  apiPort: port(3000, "Port of the platform API; 0 picks a free one"),
  edge: Type.Enum(["on", "off"], {
    default: "on",
    description: "Whether this program is an edge too; off leaves that to edge programs (svc-edge)",
  }),
  ...edgeSettings,
  ...nodeSettings,
  ...consoleSettings,
  database: Type.String({ default: "svc.db", description: "Path of the SQLite file" }),
  databaseUrl: Type.Optional(
    Type.String({
      variable: "DATABASE_URL",
      pattern: "^postgres(ql)?://",
      maxLength: 4096,
      description:
        "PostgreSQL 15 or newer instead of the file: postgresql://user:password@host/database; host1,host2 for a primary and its standby",
    }),
  ),
  adminToken: Type.Optional(secret("Operators' token, X-Admin-Token; better in the file, which only its owner reads")),
  adminTokenFile: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 4096,
      description:
        "File of operators' tokens, one a line, each valid until the time behind it where it has one (TOKEN 2030-01-31T00:00:00Z); a change is in force at once",
    }),
  ),
  nodeKey: secret(
    "Key from which each node's two tokens are derived, one for each direction; --node-tokens NODE prints them",
  ),
  nodeKeyPrevious: previous("Earlier node keys"),
  metricsToken: Type.Optional(secret("Bearer token that may read /metrics here and on agents, beside the admin token")),
  metricsTokenPrevious: previous("Earlier metrics tokens"),
  seed: secret("Seed of the sandboxes' access tokens"),
  seedPrevious: previous("Earlier seeds; without them clients are locked out of sandboxes that were created with them"),
  encryptionKey: secret("Key that secrets are encrypted with in the database"),
  encryptionKeyPrevious: previous("Earlier encryption keys; without them what is not renewed yet is lost"),
  logLevel: Type.Enum([...LOG_LEVELS], { default: "info", description: "Lowest level that is logged" }),

  baseImage: Type.String({ default: "svc/base:latest", description: "Image of the base template" }),
  baseCpuCount: Type.Integer({ default: 2, minimum: 1, maximum: 256, description: "CPU cores of the base template" }),
  baseMemoryMb: Type.Integer({ default: 1024, minimum: 128, maximum: 1_048_576, description: "Memory, MiB" }),
  baseDiskMb: Type.Integer({ default: 10_240, minimum: 0, maximum: 10_485_760, description: "Disk, MiB" }),
  poolSize: Type.Integer({
    default: 3,
    minimum: 0,
    maximum: 1024,
    description: "Least warm containers of base, all nodes",
  }),
  platformPoolSize: Type.Integer({
    default: 1,
    minimum: 0,
    maximum: 1024,
    description: "Least warm containers of each other template of the platform",
  }),
  poolCeiling: Type.Integer({
    default: 128,
    minimum: 0,
    maximum: 1024,
    description: "Most warm containers of a build, whatever the demand; nodes bound them by SVC_POOL_MEMORY_PERCENT",
  }),

  publicUrl: Type.Optional(
    Type.String({
      pattern: "^https?://[^/?#]+(/[^?#]*)?$",
      maxLength: 1024,
      description:
        "URL under which clients reach the platform API and send uploads. Default: the host that a caller used",
    }),
  ),
  filesDirectory: Type.Optional(
    Type.String({
      minLength: 1,
      description: "Uploaded files of COPY steps that this orchestrator got. Default: 'files' beside the database",
    }),
  ),
  maxUploadMb: Type.Integer({
    default: 2048,
    minimum: 1,
    maximum: 1_048_576,
    description: "Files of one COPY step, compressed, or one image, MiB",
  }),
  templateDiskMb: Type.Integer({
    default: 10_240,
    minimum: 0,
    maximum: 10_485_760,
    description: "Free disk of a template whose request names none, MiB",
  }),
  maxTemplateCpu: Type.Integer({ default: 32, minimum: 1, maximum: 1024, description: "CPU cores of a template" }),
  maxTemplateMemoryMb: Type.Integer({
    default: 65_536,
    minimum: 128,
    maximum: 4_194_304,
    description: "Memory of a template, MiB",
  }),
  maxTemplateDiskMb: Type.Integer({
    default: 102_400,
    minimum: 0,
    maximum: 104_857_600,
    description: "Free disk a template may ask for, MiB",
  }),
  maxNodeBuilds: Type.Integer({ default: 4, minimum: 1, maximum: 1000, description: "Most builds at once on a node" }),
  buildKeepHours: Type.Integer({
    default: 24,
    minimum: 0,
    maximum: 87_600,
    description: "How long unused builds and uploaded files are kept",
  }),
  buildLimitMs: ms(3_600_000, "Limit of one build on its node"),
  buildQueueMs: ms(3_600_000, "How long a build waits for room"),
  buildPollMs: ms(200, "Time between two checks of a build on its node"),

  maxSandboxHours: Type.Integer({ default: 24, minimum: 1, maximum: 8760, description: "Longest life of a sandbox" }),
  maxSandboxCpu: Type.Integer({
    default: 32,
    minimum: 1,
    maximum: 1024,
    description: "CPU cores that a create may ask for, unless the project has a limit of its own",
  }),
  maxSandboxMemoryMb: Type.Integer({
    default: 65_536,
    minimum: 128,
    maximum: 4_194_304,
    description: "Memory that a create may ask for, unless the project has a limit of its own, MiB",
  }),
  maxProjectSandboxes: Type.Integer({
    default: 1000,
    minimum: 1,
    maximum: 1_000_000,
    description: "Most running sandboxes of a project",
  }),
  historyDays: Type.Integer({
    default: 30,
    minimum: 1,
    maximum: 3650,
    description: "How long events are kept, days, and the use of snapshots by ended sandboxes",
  }),
  auditKeepDays: Type.Integer({
    default: 365,
    minimum: 1,
    maximum: 36_500,
    description: "How long entries of the audit log are kept, days",
  }),
  endedSandboxKeepHours: Type.Integer({
    default: 24,
    minimum: 0,
    maximum: 87_600,
    description: "How long an ended sandbox, its end and its logs can be read, hours; 0: not at all",
  }),
  projectStoredQuotaMb: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 1_073_741_824,
    description: "Snapshots and paused sandboxes of a project on all nodes, MiB; 0: no quota beside those of the nodes",
  }),
  volumeSizeMb: Type.Integer({
    default: 10_240,
    minimum: 64,
    maximum: 16_777_216,
    description: "Size of each new volume, MiB: what may be written to it",
  }),
  projectVolumeQuotaMb: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 1_073_741_824,
    description: "Sizes of all volumes of a project together, MiB; 0: as many as it may have volumes",
  }),
  pausedKeepHours: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 87_600,
    description: "Age from its pause at which a paused sandbox is deleted, hours; 0: never",
  }),
  snapshotKeepHours: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 87_600,
    description: "Time without use after which a snapshot is deleted, hours; 0: never",
  }),

  rateLimitCreatePerSecond: Type.Integer({
    default: 100,
    minimum: 1,
    maximum: 1_000_000,
    description: "Requests of one project that start sandboxes",
  }),
  rateLimitReadPerSecond: Type.Integer({
    default: 1000,
    minimum: 1,
    maximum: 1_000_000,
    description: "GET requests of one project",
  }),
  rateLimitWritePerSecond: Type.Integer({
    default: 500,
    minimum: 1,
    maximum: 1_000_000,
    description: "All other requests of one project",
  }),
  rateLimitContentPerSecond: Type.Integer({
    default: 200,
    minimum: 1,
    maximum: 1_000_000,
    description: "Requests of one project for the content of its volumes",
  }),
  rateLimitFailedAuthPerMinute: Type.Integer({
    default: 300,
    minimum: 1,
    maximum: 1_000_000,
    description: "Refusals of one wrong credential from one address; of all wrong credentials together, ten times this",
  }),

  apiConnections: connections("Connections to the platform API at a time"),
  apiConnectionsPerAddress: connections("Connections to the platform API from one address"),

  otlpEndpoint,
  serverTiming: Type.Enum(["on", "off"], {
    default: "off",
    description: "Whether answers to creates and forks say in Server-Timing how long their parts took: also to callers",
  }),
  startTimeoutMs: ms(
    29_000,
    "Limit of one start on one node, with its wait for a turn there; below SVC_START_LIMIT_MS",
  ),
  placementTimeoutMs: ms(55_000, "Limit of finding a node and starting there, without the waits for a turn"),
  startQueueMs: ms(
    600_000,
    "Longest wait of the starts of one request for their turns on nodes; a caller that leaves before gives its turns up",
  ),
  stopTimeoutMs: ms(10_000, "Limit of one kill on one node"),
  snapshotTimeoutMs: ms(120_000, "Limit of one pause or snapshot on one node"),
  resumeTimeoutMs: ms(60_000, "Limit of one resume on its node"),
  patienceMs: ms(30_000, "How long a pause or resume retries a silent or busy node"),
  forkConcurrency: Type.Integer({ default: 8, minimum: 1, maximum: 100, description: "Forks of one call at once" }),
  autoResumeLimit: Type.Integer({
    default: 1_000,
    minimum: 1,
    maximum: 100_000,
    description: "Requests that may wait for an auto-resume, all sandboxes together",
  }),
  autoResumeTimeoutMs: ms(45_000, "How long a request waits for its sandbox to resume"),
  expiryEveryMs: ms(100, "Time between two checks for expired sandboxes"),
  expiryConcurrency: Type.Integer({
    default: 32,
    minimum: 1,
    maximum: 1000,
    description: "Most expired sandboxes that are ended concurrently",
  }),
  reconcileEveryMs: ms(5_000, "Time between two comparisons of records and nodes"),
  orchestratorLeaseMs: ms(30_000, "How long an orchestrator on PostgreSQL may be silent before others do its work"),
  egressProxyAllow: Type.String({
    default: "",
    maxLength: 4096,
    description: "Internal ranges that egress proxies of sandboxes may be in: IPv4 CIDR, comma-separated",
  }),
  networkTimeoutMs: ms(15_000, "Limit of one change of a network policy on one node"),
  shutdownGraceMs: ms(30_000, "How long a stopping orchestrator waits for work under way"),
  ...identitySettings,
  ...projectSettings,
  ...secretSettings,
  ...webhookSettings,
});
export type OrchestratorConfig = Static<typeof OrchestratorConfig>;

/** Sandboxes on the public API: rows 5–22 of wire-contract.md §1.1. */

import { type Static, Type } from "typebox";
import { contract } from "../contract.ts";
import { LogEntry } from "../sandbox-log.ts";
import {
  bySandbox,
  INT32,
  int32,
  LogLevel,
  logQuery,
  Metadata,
  map,
  messages,
  nullable,
  page,
  TemplateReference,
  Timestamp,
  UnixSeconds,
} from "./common.ts";
import { NetworkOptions, NetworkShown, NetworkUpdate } from "./network.ts";

/** Only above zero, in the contract's words (create, connect v2, resume, fork). */
const timeout = Type.Integer({
  minimum: 1,
  maximum: INT32,
  description: "Seconds from now until the sandbox expires",
  ...messages({ minimum: "Timeout must be greater than 0" }),
});

const EnvVars = map(Type.String({ maxLength: 131_071, pattern: "^[^\\u0000]*$" }), {
  names: Type.String({ minLength: 1, maxLength: 256, pattern: "^[^=\\u0000]+$" }),
  maxProperties: 1024,
  description: "Environment of every process of the sandbox",
});

const VolumeMount = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 128 }),
  path: Type.String({ minLength: 1, maxLength: 4096 }),
});

const Iam = Type.Object({
  tokens: Type.Optional(
    map(
      Type.Object({
        audience: Type.String({ minLength: 1, maxLength: 2048 }),
        tokenType: Type.Enum(["JWT-SVID"]),
      }),
      {
        names: Type.String({ minLength: 1, maxLength: 128, pattern: "^[^{}\\u0000-\\u001f\\u007f]+$" }),
        maxProperties: 5,
      },
    ),
  ),
});

export const CreateBody = Type.Object({
  templateID: TemplateReference,
  metadata: Type.Optional(Metadata),
  mcp: Type.Optional(nullable(Type.Object({}))),
  envVars: Type.Optional(EnvVars),
  timeout: Type.Optional(timeout),
  allow_internet_access: Type.Optional(Type.Boolean()),
  network: Type.Optional(NetworkOptions),
  iam: Type.Optional(Iam),
  autoPause: Type.Optional(Type.Boolean()),
  autoPauseMemory: Type.Optional(Type.Boolean({ description: "false needs autoPause and excludes autoResume" })),
  autoResume: Type.Optional(Type.Object({ enabled: Type.Boolean() })),
  onTimeout: Type.Optional(Type.Enum(["kill", "pause"], { description: "The same as autoPause, as a word" })),
  onResume: Type.Optional(Type.Enum(["restore", "reboot"], { description: "What a later connect restores" })),
  volumeMounts: Type.Optional(Type.Array(VolumeMount, { maxItems: 64 })),
  secure: Type.Optional(Type.Boolean({ description: "Accepted and ignored: every sandbox is secured" })),
});
export type CreateBody = Static<typeof CreateBody>;

export const Sandbox = Type.Object({
  templateID: Type.String(),
  sandboxID: Type.String(),
  clientID: Type.String({ deprecated: true }),
  envdVersion: Type.String(),
  alias: Type.Optional(Type.String()),
  envdAccessToken: Type.Optional(Type.String()),
  trafficAccessToken: Type.Optional(nullable(Type.String())),
  domain: Type.Optional(nullable(Type.String())),
});
export type Sandbox = Static<typeof Sandbox>;

export const ShownState = Type.Enum(["running", "paused"]);

const listed = {
  templateID: Type.String(),
  alias: Type.Optional(Type.String()),
  sandboxID: Type.String(),
  clientID: Type.String({ deprecated: true }),
  startedAt: Timestamp,
  endAt: Timestamp,
  cpuCount: Type.Integer(),
  memoryMB: Type.Integer(),
  diskSizeMB: Type.Integer(),
  state: ShownState,
  envdVersion: Type.String(),
  metadata: Type.Optional(Metadata),
  volumeMounts: Type.Optional(Type.Array(VolumeMount)),
};

export const ListedSandbox = Type.Object(listed);
export type ListedSandbox = Static<typeof ListedSandbox>;

export const SandboxDetail = Type.Object({
  ...listed,
  envdAccessToken: Type.Optional(Type.String()),
  domain: Type.Optional(nullable(Type.String())),
  allowInternetAccess: Type.Optional(nullable(Type.Boolean())),
  network: Type.Optional(NetworkShown),
  lifecycle: Type.Optional(Type.Object({ autoResume: Type.Boolean(), onTimeout: Type.Enum(["kill", "pause"]) })),
});
export type SandboxDetail = Static<typeof SandboxDetail>;

export const SandboxMetric = Type.Object({
  timestamp: Timestamp,
  timestampUnix: Type.Integer(),
  cpuCount: Type.Integer(),
  cpuUsedPct: Type.Number(),
  memUsed: Type.Integer(),
  memTotal: Type.Integer(),
  memCache: Type.Integer(),
  diskUsed: Type.Integer(),
  diskTotal: Type.Integer(),
});
export type SandboxMetric = Static<typeof SandboxMetric>;

const ConnectBody = Type.Object({
  timeout: Type.Optional(timeout),
  memory: Type.Optional(Type.Boolean({ default: true, description: "false: from disk only, when paused" })),
  onResume: Type.Optional(Type.Enum(["restore", "reboot"])),
  onTimeout: Type.Optional(Type.Enum(["kill", "pause"])),
});

const ConnectBodyV1 = Type.Object({
  timeout: Type.Integer({ minimum: 0, maximum: INT32 }),
  memory: Type.Optional(Type.Boolean()),
});

const metadataFilter = Type.Optional(
  Type.String({ maxLength: 65_536, description: "k=v pairs joined by &, each part percent-encoded" }),
);

const ForkResult = Type.Object({
  sandbox: Type.Optional(Sandbox),
  error: Type.Optional(Type.Object({ code: Type.Integer(), message: Type.String() })),
});

const one = { tag: "Sandboxes", access: "project", params: bySandbox } as const;
const many = { tag: "Sandboxes", access: "project" } as const;
const placementErrors = [400, 401, 404, 429, 500, 503, 504] as const;

export const sandboxApi = contract({
  listRunning: {
    ...many,
    method: "GET",
    path: "/sandboxes",
    summary: "List running sandboxes",
    deprecated: true,
    query: Type.Object({ metadata: metadataFilter }),
    status: 200,
    reply: Type.Array(ListedSandbox),
    errors: [400, 401],
  },
  createV1: {
    ...many,
    method: "POST",
    path: "/sandboxes",
    summary: "Create a sandbox; 15 s to live when no timeout is given",
    body: CreateBody,
    status: 201,
    reply: Sandbox,
    errors: placementErrors,
  },
  create: {
    ...many,
    method: "POST",
    path: "/v2/sandboxes",
    summary: "Create a sandbox; 300 s to live when no timeout is given",
    body: CreateBody,
    status: 201,
    reply: Sandbox,
    errors: placementErrors,
  },
  list: {
    ...many,
    method: "GET",
    path: "/v2/sandboxes",
    summary: "List sandboxes, a page at a time",
    query: Type.Object({
      metadata: metadataFilter,
      state: Type.Optional(Type.String({ maxLength: 64, description: "Comma-separated: running, paused" })),
      order: Type.Optional(Type.Enum(["asc", "desc"], { description: "By start time; desc when left out" })),
      startedAfter: Type.Optional(Timestamp),
      template: Type.Optional(Type.String({ maxLength: 256, description: "Template id or alias" })),
      ...page,
    }),
    status: 200,
    reply: Type.Array(ListedSandbox),
    errors: [400, 401],
  },
  metricsOfMany: {
    ...many,
    method: "GET",
    path: "/sandboxes/metrics",
    summary: "Newest metrics of several sandboxes",
    query: Type.Object({
      sandbox_ids: Type.String({
        minLength: 1,
        maxLength: 16_384,
        description: "Comma-separated, at most 100, unique",
      }),
    }),
    status: 200,
    reply: Type.Object({ sandboxes: Type.Record(Type.String(), SandboxMetric) }),
    errors: [400, 401],
  },
  get: {
    ...one,
    method: "GET",
    path: "/sandboxes/{sandboxID}",
    summary: "Read a sandbox",
    status: 200,
    reply: SandboxDetail,
    errors: [401, 404],
  },
  kill: {
    ...one,
    method: "DELETE",
    path: "/sandboxes/{sandboxID}",
    summary: "Kill a sandbox, running or paused",
    status: 204,
    errors: [401, 404],
  },
  logsV1: {
    ...one,
    method: "GET",
    path: "/sandboxes/{sandboxID}/logs",
    summary: "Log lines, oldest first",
    deprecated: true,
    query: Type.Object({
      start: Type.Optional(Type.Integer({ minimum: 0, maximum: 99_999_999_999_999, description: "Unix time, ms" })),
      limit: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000, default: 1000 })),
    }),
    status: 200,
    reply: Type.Object({
      logs: Type.Array(Type.Object({ timestamp: Timestamp, line: Type.String() })),
      logEntries: Type.Array(LogEntry),
    }),
    errors: [401, 404],
  },
  logs: {
    ...one,
    method: "GET",
    path: "/v2/sandboxes/{sandboxID}/logs",
    summary: "Log entries from a cursor",
    query: Type.Object({
      ...logQuery,
      level: Type.Optional(LogLevel),
      limit: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000, default: 1000 })),
      search: Type.Optional(Type.String({ maxLength: 256 })),
    }),
    status: 200,
    reply: Type.Object({ logs: Type.Array(LogEntry) }),
    errors: [401, 404],
  },
  metrics: {
    ...one,
    method: "GET",
    path: "/sandboxes/{sandboxID}/metrics",
    summary: "Metrics between two times, oldest first",
    query: Type.Object({ start: Type.Optional(UnixSeconds), end: Type.Optional(UnixSeconds) }),
    status: 200,
    reply: Type.Array(SandboxMetric),
    errors: [400, 401, 404],
  },
  connectV1: {
    ...one,
    method: "POST",
    path: "/sandboxes/{sandboxID}/connect",
    summary: "Connect: resume if paused; the expiry is only extended",
    body: ConnectBodyV1,
    status: 200,
    alsoStatus: [201],
    reply: Sandbox,
    errors: [...placementErrors, 409],
  },
  connect: {
    ...one,
    method: "POST",
    path: "/v2/sandboxes/{sandboxID}/connect",
    summary: "Connect: resume if paused; the expiry is only extended",
    body: ConnectBody,
    optionalBody: true,
    status: 200,
    alsoStatus: [201],
    reply: Sandbox,
    errors: [...placementErrors, 409],
  },
  setTimeout: {
    ...one,
    method: "POST",
    path: "/sandboxes/{sandboxID}/timeout",
    summary: "Set the expiry from now; 0 expires now",
    body: Type.Object({ timeout: int32({ description: "Seconds from now; below 0 counts as 0" }) }),
    status: 204,
    errors: [400, 401, 404, 409],
  },
  refresh: {
    ...one,
    method: "POST",
    path: "/sandboxes/{sandboxID}/refreshes",
    summary: "Extend the expiry; never shortens",
    body: Type.Object({ duration: Type.Optional(Type.Integer({ minimum: 0, maximum: 3600, description: "Seconds" })) }),
    optionalBody: true,
    status: 204,
    errors: [400, 401, 404, 409],
  },
});

/** Pause, resume, fork, network replacement. */
export const sandboxStateApi = contract({
  pause: {
    ...one,
    method: "POST",
    path: "/sandboxes/{sandboxID}/pause",
    summary: "Pause a sandbox",
    body: Type.Object({ memory: Type.Optional(Type.Boolean({ default: true })) }),
    optionalBody: true,
    status: 204,
    errors: [401, 404, 409, 503],
  },
  resume: {
    ...one,
    method: "POST",
    path: "/sandboxes/{sandboxID}/resume",
    summary: "Resume a paused sandbox",
    deprecated: true,
    body: Type.Object({
      timeout: Type.Optional(timeout),
      autoPause: Type.Optional(Type.Boolean({ deprecated: true })),
      memory: Type.Optional(Type.Boolean({ default: true })),
    }),
    optionalBody: true,
    status: 201,
    reply: Sandbox,
    errors: [...placementErrors, 409],
  },
  fork: {
    ...one,
    method: "POST",
    path: "/sandboxes/{sandboxID}/fork",
    summary: "Start copies of a running sandbox",
    body: Type.Object({
      timeout: Type.Optional(timeout),
      count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 1 })),
    }),
    optionalBody: true,
    status: 201,
    reply: Type.Array(ForkResult),
    errors: [400, 401, 404, 409, 503],
  },
  updateNetwork: {
    ...one,
    method: "PUT",
    path: "/sandboxes/{sandboxID}/network",
    summary: "Replace the egress settings of a running sandbox",
    body: NetworkUpdate,
    status: 204,
    errors: [400, 401, 404, 409],
  },
});

/** Sandboxes on the public API. */

import { Type } from "typebox";
import { LogEntry } from "../../agent-api/sandbox-log.ts";
import { contract } from "../../http/contract.ts";
import { JOINED_BY } from "../../http/fields/url-values.ts";
import {
  ended,
  inSeconds,
  int32,
  LogLevel,
  logQuery,
  open,
  otherNames,
  page,
  Timestamp,
  UnixSeconds,
} from "../common.ts";
import {
  ConnectBody,
  ConnectBodyV1,
  CreateBody,
  Created,
  ListedSandbox,
  Sandbox,
  SandboxDetail,
  SandboxMetric,
} from "./sandbox-shapes.ts";
import { one, placementErrors } from "./sandbox-states.ts";

const metadataFilter = Type.Optional(
  Type.String({
    maxLength: 8192,
    description: "k=v pairs joined by &, each part percent-encoded",
    // Clients that repeat the parameter write one pair in each.
    [JOINED_BY]: "&",
  }),
);

/** Logs of an ended sandbox can be read without it too, as in the hosted service. */
const logsOfEnded = Type.Optional(
  Type.Boolean({ description: "Accepted: logs can be read after the end in any case" }),
);

const many = { tag: "Sandboxes", access: "project" } as const;

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
    reply: Created,
    errors: [...placementErrors, 403],
  },
  create: {
    ...many,
    method: "POST",
    path: "/v2/sandboxes",
    summary: "Create a sandbox; 300 s to live when no timeout is given",
    body: CreateBody,
    status: 201,
    reply: Created,
    errors: [...placementErrors, 403],
  },
  list: {
    ...many,
    method: "GET",
    path: "/v2/sandboxes",
    summary: "List sandboxes, a page at a time",
    query: Type.Object({
      metadata: metadataFilter,
      state: Type.Optional(
        Type.String({
          maxLength: 64,
          description: "Comma-separated: running, paused, ended; the first two when left out",
        }),
      ),
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
        maxLength: 8192,
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
    query: Type.Object({ ended }),
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
      ended: logsOfEnded,
    }),
    status: 200,
    reply: Type.Object({
      logs: Type.Array(Type.Object({ timestamp: Timestamp, line: Type.String() })),
      logEntries: Type.Array(LogEntry),
    }),
    errors: [401, 404, 410],
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
      ended: logsOfEnded,
    }),
    status: 200,
    reply: Type.Object({ logs: Type.Array(LogEntry) }),
    errors: [401, 404, 410],
  },
  metrics: {
    ...one,
    method: "GET",
    path: "/sandboxes/{sandboxID}/metrics",
    summary: "Metrics between two times, oldest first",
    query: Type.Object({ start: Type.Optional(UnixSeconds), end: Type.Optional(UnixSeconds), ended }),
    status: 200,
    reply: Type.Array(SandboxMetric),
    errors: [400, 401, 404, 410],
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
    body: Type.Object(
      { timeout: int32({ description: "Seconds from now; below 0 counts as 0" }) },
      { ...open, ...otherNames(inSeconds) },
    ),
    status: 204,
    errors: [400, 401, 404, 409],
  },
  refresh: {
    ...one,
    method: "POST",
    path: "/sandboxes/{sandboxID}/refreshes",
    summary: "Extend the expiry; never shortens",
    body: Type.Object(
      { duration: Type.Optional(Type.Integer({ minimum: 0, maximum: 3600, description: "Seconds" })) },
      { ...open, ...otherNames({ timeout: "`duration`", timeoutMs: "`duration`, in seconds" }) },
    ),
    optionalBody: true,
    status: 204,
    errors: [400, 401, 404, 409],
  },
});

/** Pause, resume, fork. */

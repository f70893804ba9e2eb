/** Lifecycle events. */

import { type Static, Type } from "typebox";
import { contract } from "../http/contract.ts";
import { bySandbox, INT32, nullable, page, SandboxId, Timestamp, UnixSeconds } from "./common.ts";

const EVENT_TYPES = [
  "created",
  "updated",
  "paused",
  "resumed",
  "killed",
  "checkpointed",
  // Events of this platform alone: a sandbox was put back to a snapshot; it is held because its node's disk is short, and is
  // released; a snapshot of it was deleted because it was older than its lifetime.
  "rewound",
  "held",
  "released",
  "snapshot_deleted",
  // A snapshot of it is named by no record: its node keeps it for a while before it deletes it.
  "snapshot_held",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** Every type as events name it. */
export const EVENT_NAMES = [
  ...EVENT_TYPES.map((type) => `sandbox.lifecycle.${type}` as const),
  "webhook.disabled",
] as const;

const anyEvent = {
  version: Type.String(),
  id: Type.String(),
  eventData: nullable(Type.Object({})),
  sandboxTeamId: Type.String(),
  timestamp: Timestamp,
};
const ofSandbox = {
  sandboxId: Type.String(),
  sandboxExecutionId: Type.String(),
  sandboxTemplateId: Type.String(),
  sandboxBuildId: Type.String(),
};

const SandboxEvent = Type.Object({
  ...anyEvent,
  type: Type.String({ description: "sandbox.lifecycle.…" }),
  ...ofSandbox,
});
export type SandboxEvent = Static<typeof SandboxEvent>;

const PlatformEvent = Type.Object({
  ...anyEvent,
  type: Type.String({ description: "sandbox.lifecycle.… or webhook.…", examples: ["sandbox.lifecycle.created"] }),
  ...Type.Partial(Type.Object(ofSandbox)).properties,
});
export type PlatformEvent = Static<typeof PlatformEvent>;

const common = { tag: "Events", access: "project" } as const;
const query = Type.Object({
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: INT32, default: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 10 })),
  orderAsc: Type.Optional(Type.Boolean({ default: false })),
});

const filters = Type.Object({
  type: Type.Optional(
    Type.String({
      maxLength: 512,
      description: "Types, comma-separated or repeated",
      examples: ["sandbox.lifecycle.killed"],
    }),
  ),
  sandboxID: Type.Optional(SandboxId),
  template: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: "Id of a template" })),
  from: Type.Optional(UnixSeconds),
  to: Type.Optional(UnixSeconds),
  order: Type.Optional(Type.Enum(["asc", "desc"], { default: "desc" })),
  ...page,
});

export const eventApi = contract({
  listAllEvents: {
    ...common,
    method: "GET",
    path: "/events",
    summary: "Events of the project; with `Accept: text/event-stream` a live stream, which `Last-Event-ID` resumes",
    query: filters,
    status: 200,
    reply: Type.Array(PlatformEvent),
    stream: "text/event-stream",
    errors: [400, 401, 503],
  },
  listEvents: {
    ...common,
    method: "GET",
    path: "/events/sandboxes",
    summary: "Lifecycle events of the project's sandboxes",
    query,
    status: 200,
    reply: Type.Array(SandboxEvent),
    errors: [400, 401],
  },
  listSandboxEvents: {
    ...common,
    method: "GET",
    path: "/events/sandboxes/{sandboxID}",
    summary: "Lifecycle events of one sandbox",
    params: bySandbox,
    query,
    status: 200,
    reply: Type.Array(SandboxEvent),
    errors: [400, 401],
  },
});

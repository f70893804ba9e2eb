/** Lifecycle events and webhooks. */

import { type Static, Type } from "typebox";
import { contract, notImplemented } from "../http/contract.ts";
import { bySandbox, INT32, nullable, Timestamp } from "./common.ts";

const EVENT_TYPES = [
  "created",
  "updated",
  "paused",
  "resumed",
  "killed",
  "checkpointed",
  // Events of this platform alone: a sandbox is held because its node's disk is short, and is released; a snapshot of it was
  // deleted because it was older than its lifetime.
  "held",
  "released",
  "snapshot_deleted",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export const SandboxEvent = Type.Object({
  version: Type.String(),
  id: Type.String(),
  type: Type.String({ description: "sandbox.lifecycle.…" }),
  eventData: nullable(Type.Object({})),
  sandboxId: Type.String(),
  sandboxExecutionId: Type.String(),
  sandboxTemplateId: Type.String(),
  sandboxBuildId: Type.String(),
  sandboxTeamId: Type.String(),
  timestamp: Timestamp,
});
export type SandboxEvent = Static<typeof SandboxEvent>;

const common = { tag: "Events", access: "project" } as const;
const query = Type.Object({
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: INT32, default: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 10 })),
  orderAsc: Type.Optional(Type.Boolean({ default: false })),
});

export const eventApi = contract({
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

const hook = { tag: "Webhooks", access: "project" } as const;
const url = Type.String({ minLength: 1, maxLength: 2048, pattern: "^https?://" });
const events = Type.Array(Type.Enum(EVENT_TYPES.map((type) => `sandbox.lifecycle.${type}`)), { maxItems: 16 });
const name = Type.String({ minLength: 1, maxLength: 128 });
const signatureSecret = Type.String({ minLength: 1, maxLength: 256, description: "Write-only" });
const byWebhook = Type.Object({ webhookID: Type.String({ format: "uuid" }) });

const Webhook = Type.Object({
  id: Type.String(),
  teamId: Type.String(),
  name: Type.String(),
  createdAt: Timestamp,
  enabled: Type.Boolean(),
  url: Type.String(),
  events: Type.Array(Type.String()),
});

export const webhookApi = notImplemented({
  createWebhook: {
    ...hook,
    method: "POST",
    path: "/events/webhooks",
    summary: "Send events to a URL",
    body: Type.Object({ name, url, enabled: Type.Optional(Type.Boolean()), events, signatureSecret }),
    status: 201,
    reply: Webhook,
    errors: [400, 401],
  },
  listWebhooks: {
    ...hook,
    method: "GET",
    path: "/events/webhooks",
    summary: "List webhooks",
    status: 200,
    reply: Type.Array(Webhook),
    errors: [401],
  },
  getWebhook: {
    ...hook,
    method: "GET",
    path: "/events/webhooks/{webhookID}",
    summary: "Read a webhook",
    params: byWebhook,
    status: 200,
    reply: Webhook,
    errors: [401, 404],
  },
  updateWebhook: {
    ...hook,
    method: "PATCH",
    path: "/events/webhooks/{webhookID}",
    summary: "Change a webhook",
    params: byWebhook,
    body: Type.Partial(Type.Object({ name, url, enabled: Type.Boolean(), events, signatureSecret })),
    status: 200,
    reply: Webhook,
    errors: [400, 401, 404],
  },
  deleteWebhook: {
    ...hook,
    method: "DELETE",
    path: "/events/webhooks/{webhookID}",
    summary: "Delete a webhook",
    params: byWebhook,
    status: 200,
    errors: [401, 404],
  },
});

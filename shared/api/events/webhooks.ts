/** Webhooks: where events are sent to, and the log of their deliveries. */

import { type Static, Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { messages, page, Timestamp } from "../common.ts";
import { EVENT_NAMES } from "../events.ts";

const hook = { tag: "Webhooks", access: "project" } as const;
const url = Type.String({
  minLength: 1,
  maxLength: 2048,
  pattern: "^https?://",
  ...messages({ pattern: "{field} must begin with http:// or https://" }),
  examples: ["https://example.com/hook"],
});
const events = Type.Array(Type.Enum([...EVENT_NAMES]), {
  minItems: 1,
  maxItems: 16,
  description: "At least one: `enabled` false is how a webhook gets none",
  ...messages({
    minItems: "body field 'events' must name at least one type; a webhook with 'enabled' false gets none",
  }),
});
const name = Type.String({ minLength: 1, maxLength: 128 });
const signatureSecret = Type.String({
  minLength: 1,
  maxLength: 256,
  description: "Write-only; `whsec_` and base64 for libraries of Standard Webhooks",
  examples: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
});
const webhookID = Type.String({ format: "uuid" });
const byWebhook = Type.Object({ webhookID });
const byDelivery = Type.Object({ webhookID, deliveryID: Type.String({ format: "uuid" }) });

export const WebhookView = Type.Object({
  id: Type.String(),
  teamId: Type.String(),
  name: Type.String(),
  createdAt: Timestamp,
  enabled: Type.Boolean(),
  url: Type.String(),
  events: Type.Array(Type.String()),
  failingSince: Type.Optional(
    Type.String({ format: "date-time", description: "First failure since the last success" }),
  ),
  disabledAt: Type.Optional(Timestamp),
  disabledReason: Type.Optional(
    Type.Enum(["gone", "failing"], { description: "Why the platform disabled it: a 410, or failures for days" }),
  ),
});
export type WebhookView = Static<typeof WebhookView>;

const status = Type.Enum(["pending", "delivered", "failed"]);

export const DeliveryView = Type.Object({
  id: Type.String(),
  webhookId: Type.String(),
  kind: Type.Enum(["event", "redelivery", "test"]),
  eventId: Type.String(),
  eventType: Type.String(),
  sandboxId: Type.Optional(Type.String()),
  status,
  attempts: Type.Integer(),
  createdAt: Timestamp,
  nextAttemptAt: Type.Optional(
    Type.String({ format: "date-time", description: "Absent behind an earlier event of the sandbox" }),
  ),
  finishedAt: Type.Optional(Timestamp),
  lastAttempt: Type.Optional(
    Type.Object({
      at: Timestamp,
      durationMs: Type.Optional(Type.Integer()),
      httpStatus: Type.Optional(Type.Integer()),
      errorClass: Type.Optional(Type.String({ description: "Open set", examples: ["http_status"] })),
      error: Type.Optional(Type.String()),
      responseBody: Type.Optional(Type.String({ description: "The beginning, redacted" })),
    }),
  ),
  earlierAttempts: Type.Optional(
    Type.Array(
      Type.Object({
        at: Timestamp,
        durationMs: Type.Optional(
          Type.Integer({ description: "Absent: the orchestrator ended before the attempt did" }),
        ),
        httpStatus: Type.Optional(Type.Integer()),
        errorClass: Type.Optional(Type.String()),
        error: Type.Optional(Type.String({ description: "The first 256 characters" })),
        responseBody: Type.Optional(Type.String({ description: "The first 256 characters, redacted" })),
      }),
      {
        description:
          "Before `lastAttempt`, oldest first; at most 50, the newest of them with `error` and `responseBody`, 4096 characters in all",
      },
    ),
  ),
  requestBody: Type.Optional(Type.String({ description: "The beginning, redacted" })),
});
export type DeliveryView = Static<typeof DeliveryView>;

export const webhookApi = contract({
  createWebhook: {
    ...hook,
    method: "POST",
    path: "/events/webhooks",
    summary: "Send events to a URL",
    body: Type.Object({ name, url, enabled: Type.Optional(Type.Boolean({ default: true })), events, signatureSecret }),
    status: 201,
    reply: WebhookView,
    errors: [400, 401, 403],
  },
  listWebhooks: {
    ...hook,
    method: "GET",
    path: "/events/webhooks",
    summary: "List webhooks",
    status: 200,
    reply: Type.Array(WebhookView),
    errors: [401],
  },
  getWebhook: {
    ...hook,
    method: "GET",
    path: "/events/webhooks/{webhookID}",
    summary: "Read a webhook",
    params: byWebhook,
    status: 200,
    reply: WebhookView,
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
    reply: WebhookView,
    errors: [400, 401, 404],
  },
  deleteWebhook: {
    ...hook,
    method: "DELETE",
    path: "/events/webhooks/{webhookID}",
    summary: "Delete a webhook and its deliveries",
    params: byWebhook,
    status: 200,
    errors: [401, 404],
  },
  testWebhook: {
    ...hook,
    method: "POST",
    path: "/events/webhooks/{webhookID}/test",
    summary: "Send an event of the type webhook.test, once, also while the webhook is disabled",
    params: byWebhook,
    status: 202,
    reply: DeliveryView,
    errors: [401, 404],
  },
  listDeliveries: {
    ...hook,
    method: "GET",
    path: "/events/webhooks/{webhookID}/deliveries",
    summary: "The delivery log, newest first",
    params: byWebhook,
    query: Type.Object({ status: Type.Optional(status), ...page }),
    status: 200,
    reply: Type.Array(DeliveryView),
    errors: [400, 401, 404],
  },
  redeliver: {
    ...hook,
    method: "POST",
    path: "/events/webhooks/{webhookID}/deliveries/{deliveryID}/redeliver",
    summary: "Send the event of a delivery again, once",
    params: byDelivery,
    status: 202,
    reply: DeliveryView,
    errors: [401, 404],
  },
});

/** The tables of webhooks, of their deliveries, and of the counter that orders events. */

import { flag, json, number, type RecordOf, type RowOf, table, text } from "../codec.ts";

export const webhookTable = table(
  {
    id: text("id"),
    projectId: text("project_id"),
    name: text("name"),
    url: text("url"),
    /** Types of events. */
    events: json("events").as<readonly string[]>(),
    enabled: flag("enabled"),
    createdAt: number("created_at"),
    failingSince: number("failing_since").later(),
    disabledAt: number("disabled_at").later(),
    /** Why the platform disabled it; undefined: it did not. */
    disabledReason: text("disabled_reason").as<"gone" | "failing">().later(),
  },
  {
    /** Sealed for this webhook. */
    secret: text("secret"),
    /** Written by each event for it: the write makes the event's transaction wait for one that ends a delivery. */
    lastEventAt: number("last_event_at").later(),
    /** Attempts that failed since the last success. */
    failures: number("failures").initially(0),
  },
);

export type Webhook = RecordOf<typeof webhookTable>;
export type WebhookRow = RowOf<typeof webhookTable>;

export interface DeliveryRow {
  readonly id: string;
  readonly webhook_id: string;
  readonly kind: "event" | "redelivery" | "test";
  readonly event_id: string;
  readonly event_type: string;
  /** The body of a test, which has no row in `events`. */
  readonly event: string | null;
  /** Deliveries of one stream wait for each other: the sandbox's id, or an id of its own. */
  readonly stream: string;
  /** From the counter of the events. */
  readonly sequence: number;
  readonly status: "pending" | "delivered" | "failed";
  /** Attempts that were begun. */
  readonly attempts: number;
  readonly created_at: number;
  /** When it may be claimed; null behind an earlier one of its stream, and once it has ended. */
  readonly due_at: number | null;
  /** The claim under way, which `due_at` ends if its process dies. */
  readonly claim: string | null;
  /** Begin of the latest attempt; its end is in the columns behind `finished_at`, which are null until then. */
  readonly attempted_at: number | null;
  readonly finished_at: number | null;
  readonly duration_ms: number | null;
  readonly http_status: number | null;
  readonly error_class: string | null;
  readonly error: string | null;
  /** Beginning of the receiver's answer, redacted. */
  readonly response: string | null;
  /** JSON list of `EarlierAttempt`, oldest first. */
  readonly earlier: string | null;
}

/** An attempt before the latest one. One without a duration has no end: the process died, or cut it off when it stopped. */
export interface EarlierAttempt {
  readonly at: number;
  readonly durationMs?: number;
  readonly httpStatus?: number;
  readonly errorClass?: string;
  /** The beginning; absent too where an earlier version of the platform has stored the attempt. */
  readonly error?: string;
  /** The beginning of the receiver's answer, redacted; absent too where an earlier version has stored the attempt. */
  readonly responseBody?: string;
}

interface EventOrderRow {
  /** Always 1. */
  readonly id: number;
  readonly last: number;
}

export interface WebhookTables {
  readonly webhooks: WebhookRow;
  readonly webhook_deliveries: DeliveryRow;
  readonly event_order: EventOrderRow;
}

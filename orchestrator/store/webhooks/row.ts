/** The columns of webhooks, of their deliveries, and of the counter that orders events. */

export interface WebhookRow {
  readonly id: string;
  readonly project_id: string;
  readonly name: string;
  readonly url: string;
  /** Sealed for this webhook. */
  readonly secret: string;
  /** JSON list of types. */
  readonly events: string;
  readonly enabled: number;
  readonly created_at: number;
  /** Written by each event for it: the write makes the event's transaction wait for one that ends a delivery. */
  readonly last_event_at: number | null;
  /** Attempts that failed since the last success. */
  readonly failures: number;
  readonly failing_since: number | null;
  readonly disabled_at: number | null;
  /** Null while it is enabled, and when its project disabled it. */
  readonly disabled_reason: "gone" | "failing" | null;
}

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

/** What a receiver gets: the event as `GET /events` shows it, with the older names of its fields. Pure. */

import type { PlatformEvent } from "../../shared/api/events.ts";
import { toEvent } from "../events/view.ts";
import type { Claimed, LoggedDelivery } from "../store/webhooks/deliveries.ts";
import type { DeliveryRequest } from "./send.ts";
import { deliveryHeaders, inEitherAlphabet } from "./signature.ts";

const MAX_BODY_BYTES = 256 * 1024;

/** Undefined: the event is gone. */
export function deliveryRequest(claimed: Claimed, at: number): DeliveryRequest | undefined {
  const stored = bodyOf(claimed.body, claimed.event);
  if (stored === undefined) return undefined;
  const body = inEitherAlphabet(stored, claimed.secret);
  const headers = deliveryHeaders({
    webhookId: claimed.webhookId,
    deliveryId: claimed.id,
    messageId: claimed.eventId,
    at,
    secret: claimed.secret,
    body,
  });
  return { webhookId: claimed.webhookId, url: claimed.url, headers, body };
}

export function bodyOf(own: string | undefined, event: LoggedDelivery["eventRow"]): string | undefined {
  if (own !== undefined) return own;
  return event === undefined ? undefined : eventBody(toEvent(event));
}

/** Event data that would make the body too large is left out, and the body says so. */
export function eventBody(event: PlatformEvent): string {
  const body = JSON.stringify(withOlderNames(event));
  if (Buffer.byteLength(body) <= MAX_BODY_BYTES) return body;
  return JSON.stringify(withOlderNames({ ...event, eventData: { omitted: "too large: read the event from the API" } }));
}

/** Receivers of this protocol read either spelling. */
function withOlderNames(event: PlatformEvent): Readonly<Record<string, unknown>> {
  const older = Object.entries(event).map(
    ([name, value]) => [name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value] as const,
  );
  return { ...event, ...Object.fromEntries(older) };
}

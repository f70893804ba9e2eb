/** Headers of a delivery, with the signature of the wire protocol and that of Standard Webhooks. Pure. */

import { createHash, createHmac } from "node:crypto";

export interface Signed {
  readonly webhookId: string;
  readonly deliveryId: string;
  /** The same at each attempt and redelivery of an event. */
  readonly messageId: string;
  /** Unix milliseconds of the attempt. */
  readonly at: number;
  readonly secret: string;
  readonly body: string;
}

export function deliveryHeaders(signed: Signed): Readonly<Record<string, string>> {
  const { webhookId, deliveryId, messageId, at, secret, body } = signed;
  const own = {
    "webhook-id": webhookId,
    "delivery-id": deliveryId,
    "signature-version": "v1",
    signature: older(secret, body),
  };
  const timestamp = String(Math.floor(at / 1000));
  const hmac = createHmac("sha256", keyOf(secret)).update(`${messageId}.${timestamp}.${body}`).digest("base64");
  return {
    ...Object.fromEntries(["e2b", "svc"].flatMap((prefix) => prefixed(prefix, own))),
    "webhook-id": messageId,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${hmac}`,
  };
}

function older(secret: string, body: string): string {
  return createHash("sha256")
    .update(secret + body)
    .digest("base64url");
}

/**
 * The same JSON, its fields in an order for which the older signature has neither `-` nor `_`: receivers compare it with base64
 * or with base64url, and those are equal then. One event and one secret always have the same body.
 */
export function inEitherAlphabet(body: string, secret: string): string {
  const isIt = (text: string) => !/[-_]/.test(older(secret, text));
  if (isIt(body)) return body;
  const fields = Object.entries(JSON.parse(body) as object).map(
    ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
  );
  for (const [from, moved] of fields.entries()) {
    const others = fields.toSpliced(from, 1);
    for (const to of fields.keys()) {
      const text = `{${others.toSpliced(to, 0, moved).join(",")}}`;
      if (isIt(text)) return text;
    }
  }
  return body;
}

function prefixed(prefix: string, headers: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(headers).map(([name, value]) => [`${prefix}-${name}`, value]);
}

/** The bytes behind `whsec_`, which libraries of Standard Webhooks expect; of any other secret its UTF-8 bytes. */
function keyOf(secret: string): Buffer {
  const [, encoded] =
    /^whsec_((?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$/.exec(
      secret,
    ) ?? [];
  return encoded === undefined ? Buffer.from(secret, "utf8") : Buffer.from(encoded, "base64");
}

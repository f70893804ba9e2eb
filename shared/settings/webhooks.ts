/** Settings of webhooks. */

import { Type } from "typebox";
import { ms } from "./schemas.ts";

export const webhookSettings = {
  webhookAllow: Type.String({
    default: "",
    maxLength: 4096,
    description: "Ranges of this machine and of private networks that webhooks may be sent to: CIDR, comma-separated",
  }),
  webhookTimeoutMs: ms(10_000, "Limit of one attempt to deliver an event to a webhook"),
  webhookDisableDays: Type.Integer({
    default: 5,
    minimum: 0,
    maximum: 365,
    description: "Time without a success after which a failing webhook is disabled, days; 0: never",
  }),
  webhookLogDays: Type.Integer({
    default: 7,
    minimum: 1,
    maximum: 365,
    description: "How long ended deliveries of webhooks can be read, days",
  }),
  maxProjectWebhooks: Type.Integer({
    default: 20,
    minimum: 0,
    maximum: 1000,
    description: "Most webhooks of a project",
  }),
};

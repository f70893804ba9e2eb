/** Constructs the delivery of events to webhooks, the upkeep of its log, and the handlers of webhooks. */

import type { Base } from "../base/base.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import type { Store } from "../store/store.ts";
import { targetAddresses } from "./addresses.ts";
import { startDelivering } from "./delivering.ts";
import { createWebhookHandlers } from "./handlers.ts";
import { createSend } from "./send.ts";
import { startUpkeep } from "./upkeep.ts";

const DAY_MS = 86_400_000;

interface WebhooksDeps {
  readonly store: Store;
  readonly metrics: Metrics;
}

export function startWebhooks({ config, now, random, log, teardown, rounds }: Base, { store, metrics }: WebhooksDeps) {
  const addresses = targetAddresses(config.webhookAllow);
  const { webhookTimeoutMs: timeoutMs } = config;
  const delivering = startDelivering({
    store,
    send: createSend({ addresses, now, timeoutMs }),
    now,
    random,
    log: log.child({ part: "webhooks" }),
    timeoutMs,
    disableMs: config.webhookDisableDays * DAY_MS,
    observe: (result) => metrics.sent(result),
  });
  const upkeep = startUpkeep({ store, keepMs: config.webhookLogDays * DAY_MS, rounds, now, log });
  teardown.add("webhooks", () => delivering.stop());
  teardown.add("webhook log", () => upkeep.stop());
  teardown.add(
    "news of deliveries",
    store.events.onAdded((projectId, deliveries) => void (deliveries > 0 && delivering.wake(projectId))),
  );
  return {
    handlers: createWebhookHandlers({
      store,
      addresses,
      limit: config.maxProjectWebhooks,
      wake: () => delivering.wake(),
    }),
  };
}

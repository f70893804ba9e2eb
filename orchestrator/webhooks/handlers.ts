/** Handlers of webhooks and of their delivery log. */

import type { DeliveryView, WebhookView, webhookApi } from "../../shared/api/events/webhooks.ts";
import { defined } from "../../shared/defined.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { fromToken, toToken } from "../events/cursor.ts";
import type { Project } from "../store/projects/record.ts";
import type { Store } from "../store/store.ts";
import { earlierAttempts } from "../store/webhooks/attempts.ts";
import type { LoggedDelivery } from "../store/webhooks/deliveries.ts";
import type { Webhook } from "../store/webhooks/record.ts";
import type { TargetAddresses } from "./addresses.ts";
import { bodyOf, eventBody } from "./delivery-request.ts";
import { redacted } from "./redact.ts";
import { checkTarget } from "./target.ts";

export interface WebhookHandlersDeps {
  readonly store: Store;
  readonly addresses: TargetAddresses;
  /** Most webhooks of a project. */
  readonly limit: number;
  /** A delivery was asked for. */
  readonly wake: () => void;
}

export function createWebhookHandlers(deps: WebhookHandlersDeps): Handlers<typeof webhookApi, Project> {
  const { webhooks, deliveries } = deps.store;

  const known = async ({ id: projectId }: Project, id: string): Promise<Webhook> =>
    found(await webhooks.get(projectId, id), id);

  return {
    async createWebhook({ body }, { caller }) {
      const { name, events, enabled = true, signatureSecret: secret } = body;
      const url = checkTarget(body.url, deps.addresses);
      const webhook = await webhooks.add(
        { projectId: caller.id, name, url, events: [...new Set(events)], enabled, secret },
        deps.limit,
      );
      if (webhook !== undefined) return toView(webhook);
      throw new AppError(
        "forbidden",
        `the project has ${deps.limit} webhooks, the most that SVC_MAX_PROJECT_WEBHOOKS allows: delete one, or ask the operator`,
      );
    },

    listWebhooks: async (_input, { caller }) => (await webhooks.list(caller.id)).map(toView),

    getWebhook: async ({ params }, { caller }) => toView(await known(caller, params.webhookID)),

    async updateWebhook({ params, body }, { caller }) {
      const { name, enabled, events, signatureSecret: secret } = body;
      await known(caller, params.webhookID);
      const changed = await webhooks.change(caller.id, params.webhookID, {
        ...defined({ name, enabled }),
        ...(events === undefined ? {} : { events: [...new Set(events)] }),
        ...defined({ secret }),
        ...(body.url === undefined ? {} : { url: checkTarget(body.url, deps.addresses) }),
      });
      const webhook = found(changed, params.webhookID);
      // What failed may work now, and the next events of its sandboxes wait behind it.
      if (body.url !== undefined || secret !== undefined || enabled === true) await deliveries.retryNow(webhook.id);
      deps.wake();
      return toView(webhook);
    },

    async deleteWebhook({ params }, { caller }) {
      if (!(await webhooks.remove(caller.id, params.webhookID))) throw missing(params.webhookID);
    },

    async testWebhook({ params }, { caller }) {
      const { id, name } = await known(caller, params.webhookID);
      const body = (event: { readonly id: string; readonly at: number }) =>
        eventBody({
          version: "v1",
          id: event.id,
          type: "webhook.test",
          eventData: { webhook_id: id, name },
          sandboxTeamId: caller.id,
          timestamp: new Date(event.at).toISOString(),
        });
      const delivery = await deliveries.test(id, body);
      deps.wake();
      return toDelivery(delivery);
    },

    async listDeliveries({ params, query }, { caller, header }) {
      const { id } = await known(caller, params.webhookID);
      const { limit = 100, nextToken = "", status } = query;
      const rows = await deliveries.log(id, {
        limit: limit + 1,
        ...defined({ status }),
        ...(nextToken === "" ? {} : { before: fromToken(nextToken) }),
      });
      const shown = rows.slice(0, limit);
      const last = shown.at(-1);
      if (last !== undefined && rows.length > limit) header("x-next-token", toToken(last.sequence));
      return shown.map(toDelivery);
    },

    async redeliver({ params }, { caller }) {
      const { id } = await known(caller, params.webhookID);
      const delivery = await deliveries.repeat(id, params.deliveryID);
      if (delivery === undefined) {
        throw new AppError("not_found", `the webhook's log has no delivery "${params.deliveryID}"`);
      }
      deps.wake();
      return toDelivery(delivery);
    },
  };
}

function missing(id: string): AppError {
  return new AppError("not_found", `Webhook "${id}" doesn't exist or you don't have access to it`);
}

function found(webhook: Webhook | undefined, id: string): Webhook {
  if (webhook === undefined) throw missing(id);
  return webhook;
}

function toView(webhook: Webhook): WebhookView {
  const { id, projectId: teamId, name, url, enabled, events, failingSince, disabledAt, disabledReason } = webhook;
  return {
    id,
    teamId,
    name,
    createdAt: iso(webhook.createdAt),
    enabled,
    url,
    events: [...events],
    ...(failingSince === undefined ? {} : { failingSince: iso(failingSince) }),
    ...(disabledAt === undefined ? {} : { disabledAt: iso(disabledAt) }),
    ...defined({ disabledReason }),
  };
}

function toDelivery(row: LoggedDelivery): DeliveryView {
  const body = bodyOf(row.event ?? undefined, row.eventRow);
  const sandboxId = row.eventRow?.sandbox_id ?? "";
  const earlier = earlierAttempts(row);
  return {
    id: row.id,
    webhookId: row.webhook_id,
    kind: row.kind,
    eventId: row.event_id,
    eventType: row.event_type,
    ...(sandboxId === "" ? {} : { sandboxId }),
    status: row.status,
    attempts: row.attempts,
    createdAt: iso(row.created_at),
    // While an attempt is under way, the time at which its claim ends is of no use to anyone.
    ...(row.due_at === null || row.claim !== null ? {} : { nextAttemptAt: iso(row.due_at) }),
    ...(row.finished_at === null ? {} : { finishedAt: iso(row.finished_at) }),
    ...(row.attempted_at === null ? {} : { lastAttempt: toAttempt(row, row.attempted_at) }),
    ...(earlier.length === 0 ? {} : { earlierAttempts: earlier.map((each) => ({ ...each, at: iso(each.at) })) }),
    // The secret is in no body: only what looks like one is left out.
    ...(body === undefined ? {} : { requestBody: redacted(body, "") }),
  };
}

function toAttempt(row: LoggedDelivery, at: number): NonNullable<DeliveryView["lastAttempt"]> {
  return {
    at: iso(at),
    ...defined({
      durationMs: row.duration_ms ?? undefined,
      httpStatus: row.http_status ?? undefined,
      errorClass: row.error_class ?? undefined,
      error: row.error ?? undefined,
      responseBody: row.response ?? undefined,
    }),
  };
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

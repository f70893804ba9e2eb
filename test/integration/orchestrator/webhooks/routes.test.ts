/** Webhooks through the API: who may set and read them, what is never shown, tests, the log, and redelivery. */

import { afterAll, beforeAll, expect, test } from "vitest";
import type { DeliveryView, WebhookView } from "../../../../shared/api/events/webhooks.ts";
import { type Answer, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { accept, startReceiver, status } from "../../../support/webhooks/receiver.ts";
import { LIFECYCLE, SECRET } from "../../../support/webhooks/world.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ config: { webhookAllow: "127.0.0.0/8", maxProjectWebhooks: 12 } });
});
afterAll(() => cluster.stop());

const { create, post } = sandboxesOn(() => cluster);
const PATH = "/events/webhooks";
const UNKNOWN = "00000000-0000-4000-8000-000000000000";

function given(url: string, over: object = {}) {
  return { name: "mine", url, events: LIFECYCLE, signatureSecret: SECRET, ...over };
}

async function made(url: string, over: object = {}): Promise<WebhookView> {
  const answer = await cluster.ask("POST", PATH, { body: given(url, over) });
  expect(answer.status, answer.text).toBe(201);
  return answer.body as WebhookView;
}

const remove = (id: string) => cluster.ask("DELETE", `${PATH}/${id}`);

async function log(id: string, query = ""): Promise<DeliveryView[]> {
  return (await cluster.ask("GET", `${PATH}/${id}/deliveries${query}`)).body as DeliveryView[];
}

test("a webhook without a type of events is refused, when it is made and when it is changed", async () => {
  const message = "body field 'events' must name at least one type; a webhook with 'enabled' false gets none";
  const refused = await cluster.ask("POST", PATH, { body: given("https://example.com/none", { events: [] }) });
  expect(refused.body).toMatchObject({ code: 400, message });
  const webhook = await made("https://example.com/some");
  const emptied = await cluster.ask("PATCH", `${PATH}/${webhook.id}`, { body: { events: [] } });
  expect(emptied.body).toMatchObject({ code: 400, message });
  expect((await cluster.ask("GET", `${PATH}/${webhook.id}`)).body).toMatchObject({ events: LIFECYCLE });
  await remove(webhook.id);
});

test("a webhook is made, read, listed, changed and deleted, and never shows its secret, which is sealed in the database", async () => {
  const webhook = await made("https://example.com/hook");
  const answers: Answer[] = [];
  const ask = async (...[method, path, body]: Parameters<Cluster["ask"]>) => {
    const answer = await cluster.ask(method, path, body);
    answers.push(answer);
    return answer;
  };
  expect(webhook).toEqual({
    id: expect.any(String) as string,
    teamId: cluster.teamId,
    name: "mine",
    createdAt: expect.any(String) as string,
    enabled: true,
    url: "https://example.com/hook",
    events: LIFECYCLE,
  });
  expect((await ask("GET", `${PATH}/${webhook.id}`)).body).toEqual(webhook);
  expect((await ask("GET", PATH)).body).toEqual([webhook]);
  const change = { name: "other", enabled: false, signatureSecret: `${SECRET}-new` };
  const changed = await ask("PATCH", `${PATH}/${webhook.id}`, { body: change });
  expect([changed.status, changed.body]).toEqual([200, { ...webhook, name: "other", enabled: false }]);
  expect((await ask("PATCH", `${PATH}/${webhook.id}`, { body: {} })).body).toEqual(changed.body);
  for (const { text } of answers) expect(text).not.toContain(SECRET.slice(6));
  expect(await cluster.database.stored()).not.toContain(SECRET.slice(6));

  const removed = await ask("DELETE", `${PATH}/${webhook.id}`);
  expect([removed.status, removed.text]).toEqual([200, ""]);
  for (const method of ["GET", "DELETE"]) expect((await ask(method, `${PATH}/${webhook.id}`)).status).toBe(404);
  expect((await ask("PATCH", `${PATH}/${webhook.id}`, { body: {} })).status).toBe(404);
});

test("another project's webhook is not found by any route", async () => {
  const webhook = await made("https://example.com/hook");
  const { key } = await cluster.addProject("Foreign");
  const path = `${PATH}/${webhook.id}`;
  for (const [method, to, body] of [
    ["GET", path, undefined],
    ["PATCH", path, { name: "x" }],
    ["DELETE", path, undefined],
    ["POST", `${path}/test`, undefined],
    ["GET", `${path}/deliveries`, undefined],
    ["POST", `${path}/deliveries/${UNKNOWN}/redeliver`, undefined],
  ] as const) {
    expect([method, to, (await cluster.ask(method, to, { key, body })).status]).toEqual([method, to, 404]);
  }
  expect((await cluster.ask("GET", PATH, { key })).body).toEqual([]);
  await remove(webhook.id);
});

test("a URL inside, with credentials, or of another scheme is refused, also by a change", async () => {
  const webhook = await made("https://example.com/hook");
  for (const url of [
    "http://10.0.0.1/",
    "http://[::1]/",
    "http://0xa000001/",
    "https://u:p@example.com/",
    "ftp://a.com/",
    "x",
  ]) {
    const created = await cluster.ask("POST", PATH, { body: given(url) });
    expect([url, created.status, (created.body as { message: string }).message]).toEqual([
      url,
      400,
      expect.stringContaining("'url'"),
    ]);
    expect((await cluster.ask("PATCH", `${PATH}/${webhook.id}`, { body: { url } })).status).toBe(400);
  }
  expect((await cluster.ask("GET", `${PATH}/${webhook.id}`)).body).toEqual(webhook);
  await remove(webhook.id);
});

test("a project has as many webhooks as the operator allows, however many ask at once", async () => {
  const { key } = await cluster.addProject("Many");
  const statuses = await Promise.all(
    Array.from(
      { length: 15 },
      async () => (await cluster.ask("POST", PATH, { key, body: given("https://a.com/") })).status,
    ),
  );
  expect(statuses.toSorted((a, b) => a - b)).toEqual([...Array<number>(12).fill(201), 403, 403, 403]);
  const refused = await cluster.ask("POST", PATH, { key, body: given("https://a.com/") });
  expect((refused.body as { message: string }).message).toContain("SVC_MAX_PROJECT_WEBHOOKS");
});

test("the events of a sandbox arrive in order, with their data, and the log has each with its answer", async () => {
  const receiver = await startReceiver();
  const webhook = await made(receiver.url);
  const { sandboxID: id } = await create({ metadata: { user: "ü", api_token: "hidden-in-the-log" } });
  await post(id, "timeout", { timeout: 60 });
  await post(id, "pause");
  await cluster.ask("DELETE", `/sandboxes/${id}`);
  await expect.poll(() => receiver.got.length).toBe(4);
  expect(receiver.got.map(({ event }) => event)).toMatchObject([
    { type: "sandbox.lifecycle.created", sandboxId: id, sandbox_team_id: cluster.teamId, event_data: {} },
    { type: "sandbox.lifecycle.updated", eventData: { set_timeout: expect.stringMatching(/^\d{4}-.*Z$/) as string } },
    {
      type: "sandbox.lifecycle.paused",
      eventData: {
        sandbox_metadata: { user: "ü" },
        execution: {
          started_at: expect.any(String) as string,
          vcpu_count: 2,
          memory_mb: 1024,
          execution_time: expect.any(Number) as number,
        },
      },
    },
    { type: "sandbox.lifecycle.killed", eventData: { kill_reason: "request" } },
  ]);
  // Its execution ended with the pause.
  expect(receiver.got[3]?.event.eventData).not.toHaveProperty("execution");
  expect(receiver.got[0]?.headers).toMatchObject({ "e2b-webhook-id": webhook.id, "svc-webhook-id": webhook.id });
  await expect.poll(async () => (await log(webhook.id, "?status=delivered")).length).toBe(4);

  const first = await cluster.ask("GET", `${PATH}/${webhook.id}/deliveries?limit=3`);
  const token = first.headers.get("x-next-token") ?? "";
  const rest = await log(webhook.id, `?limit=3&nextToken=${token}`);
  const all = [...(first.body as DeliveryView[]), ...rest];
  expect(all.map(({ eventId }) => eventId)).toEqual(receiver.got.map(({ event }) => event.id).toReversed());
  expect(all.at(-1)).toMatchObject({
    kind: "event",
    status: "delivered",
    attempts: 1,
    sandboxId: id,
    lastAttempt: { httpStatus: 200, responseBody: "ok", durationMs: expect.any(Number) as number },
  });
  expect(JSON.stringify(all)).not.toContain("hidden-in-the-log");
  await remove(webhook.id);
});

test("a test and a redelivery are sent once, also while the webhook is disabled, and repeat the id of their event", async () => {
  const receiver = await startReceiver();
  const webhook = await made(receiver.url, { enabled: false });
  const { sandboxID: id } = await create();
  const tested = await cluster.ask("POST", `${PATH}/${webhook.id}/test`);
  expect([tested.status, tested.body]).toMatchObject([
    202,
    { kind: "test", status: "pending", eventType: "webhook.test" },
  ]);
  await expect.poll(() => receiver.got.length).toBe(1);
  expect(receiver.got[0]?.event).toMatchObject({ type: "webhook.test", eventData: { webhook_id: webhook.id } });
  await expect.poll(async () => (await log(webhook.id))[0]?.status).toBe("delivered");

  receiver.answer(status(500));
  const again = `${PATH}/${webhook.id}/deliveries/${(tested.body as DeliveryView).id}/redeliver`;
  const repeated = await cluster.ask("POST", again);
  expect([repeated.status, repeated.body]).toMatchObject([202, { kind: "redelivery" }]);
  await expect.poll(async () => (await log(webhook.id))[0]?.status).toBe("failed");
  const [one, two] = receiver.got;
  expect(two?.body).toBe(one?.body);
  expect(two?.headers["webhook-id"]).toBe(one?.headers["webhook-id"]);
  expect(two?.headers["e2b-delivery-id"]).not.toBe(one?.headers["e2b-delivery-id"]);
  const unknown = await cluster.ask("POST", `${PATH}/${webhook.id}/deliveries/${UNKNOWN}/redeliver`);
  expect(unknown.status).toBe(404);
  await cluster.ask("DELETE", `/sandboxes/${id}`);
  expect(receiver.got).toHaveLength(2);
  await remove(webhook.id);
});

test("a restart of the platform loses no delivery", async () => {
  const receiver = await startReceiver(status(500));
  const webhook = await made(receiver.url, { events: ["sandbox.lifecycle.created"] });
  const { sandboxID: id } = await create();
  await expect.poll(async () => (await log(webhook.id))[0]?.lastAttempt?.httpStatus).toBe(500);
  // Its next attempt waits for the test.
  await cluster.restart({}, async () => {
    const later = Date.now() + 3_600_000;
    await cluster.database.query("update webhook_deliveries set due_at = ? where webhook_id = ?", later, webhook.id);
  });
  const [waiting] = await log(webhook.id);
  expect(waiting).toMatchObject({ status: "pending", sandboxId: id, nextAttemptAt: expect.any(String) as string });
  // One, or more where the machine was busy for as long as the wait between two.
  const earlier = waiting?.earlierAttempts ?? [];
  expect(earlier).toHaveLength((waiting?.attempts ?? 0) - 1);
  receiver.answer(accept);
  await cluster.database.query("update webhook_deliveries set due_at = 1 where webhook_id = ?", webhook.id);
  await expect.poll(async () => (await log(webhook.id))[0]?.status).toBe("delivered");
  expect((await log(webhook.id))[0]).toMatchObject({
    attempts: (waiting?.attempts ?? 0) + 1,
    lastAttempt: { httpStatus: 200 },
    earlierAttempts: [...earlier, { ...waiting?.lastAttempt }],
  });
  await cluster.ask("DELETE", `/sandboxes/${id}`);
  await remove(webhook.id);
});

test("the metrics count attempts and what waits", async () => {
  const { text } = await cluster.ask("GET", "/metrics", {
    key: null,
    headers: { "x-admin-token": "test-admin-token-0001" },
  });
  expect(text).toMatch(/svc_webhook_queue \d/);
  expect(text).toMatch(/svc_webhook_deliveries_total/);
});

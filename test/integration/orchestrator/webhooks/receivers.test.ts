/** Real receivers that lead inside, do not answer, answer without end, or want nothing more. */

import { describe, expect, test } from "vitest";
import { targetAddresses } from "../../../../orchestrator/webhooks/addresses.ts";
import { createWebhookHandlers } from "../../../../orchestrator/webhooks/handlers.ts";
import { accept, startReceiver, status } from "../../../support/webhooks/receiver.ts";
import { PROJECT, SECRET, webhookWorld } from "../../../support/webhooks/world.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

describe("targets inside", () => {
  test("are not reached by a redirect, which is a failure", async () => {
    const world = await webhookWorld();
    const inside = await startReceiver();
    const receiver = await startReceiver(status(302, { location: inside.url }));
    const webhook = await world.webhook(receiver.url);
    await world.event("i1");
    await world.process().settle();
    expect([receiver.got.length, inside.got.length]).toEqual([1, 0]);
    expect(await world.deliveries(webhook.id)).toMatchObject([
      { status: "pending", error_class: "redirect", http_status: 302, attempts: 1 },
    ]);
  });

  test("are not reached by a name, also when it had another address when it was checked", async () => {
    const inside = await startReceiver();
    let addresses = ["127.0.0.2"];
    const world = await webhookWorld({ allowed: "127.0.0.2", names: { "moving.example": () => addresses } });
    const delivering = world.process();
    const webhook = await world.webhook(`http://moving.example:${inside.port}/`);
    await world.event("i1");
    for (const inner of [["127.0.0.1"], ["10.0.0.1", "::1"], ["::ffff:127.0.0.1"], []]) {
      addresses = inner;
      await delivering.settle();
      expect(await world.deliveries(webhook.id)).toMatchObject([{ error_class: "forbidden_address" }]);
      world.clock.at += 60 * MINUTE_MS;
    }
    // Nothing listens on the address that is allowed: it was dialled, and not the other one.
    addresses = ["127.0.0.1", "127.0.0.2"];
    await delivering.settle();
    expect(await world.deliveries(webhook.id)).toMatchObject([{ error_class: "connection", attempts: 5 }]);
    expect(inside.got).toEqual([]);
  });

  test("are not reached by an address that an operator allowed when the webhook was made", async () => {
    const inside = await startReceiver();
    const world = await webhookWorld({ allowed: "" });
    const webhook = await world.webhook(inside.url);
    await world.event("i1");
    await world.process().settle();
    expect(inside.got).toEqual([]);
    expect(await world.deliveries(webhook.id)).toMatchObject([{ error_class: "forbidden_address" }]);
  });
});

describe("a receiver", () => {
  test("that never answers is given up after the limit of an attempt", async () => {
    const world = await webhookWorld({ timeoutMs: 50 });
    const receiver = await startReceiver(() => undefined);
    const webhook = await world.webhook(receiver.url);
    await world.event("i1");
    await world.process().settle();
    expect(await world.deliveries(webhook.id)).toMatchObject([{ error_class: "timeout", status: "pending" }]);
  });

  test("that answers without end is read to a bound, and its secrets are not kept", async () => {
    const world = await webhookWorld();
    const receiver = await startReceiver((response) => {
      response.write(`{"token":"abc","mine":"${SECRET}"}`);
      const more = () => {
        while (!response.destroyed && response.write("x".repeat(65_536)));
        if (!response.destroyed) response.once("drain", more);
      };
      more();
    });
    const webhook = await world.webhook(receiver.url);
    await world.event("i1");
    await world.process().settle();
    const [delivery] = await world.deliveries(webhook.id);
    expect(delivery).toMatchObject({ status: "delivered", http_status: 200 });
    expect(delivery?.response).toHaveLength(2_048);
    expect(delivery?.response).toContain('{"token":"[redacted]","mine":"[redacted]"}');
  });

  test("that cannot be reached or found is tried again", async () => {
    const world = await webhookWorld();
    // No program of this machine listens on port 1; one that was just closed may be another test's by now.
    const webhooks = [await world.webhook("http://127.0.0.1:1/"), await world.webhook("http://unknown.example/")];
    await world.event("i1");
    await world.process().settle();
    const rows = (await Promise.all(webhooks.map(({ id }) => world.deliveries(id)))).flat();
    expect(rows).toMatchObject([
      { error_class: "connection", error: "the connection failed (ECONNREFUSED)", status: "pending" },
      { error_class: "dns", status: "pending" },
    ]);
  });
});

describe("a webhook", () => {
  test.each([
    ["its url", { url: true }],
    ["its secret", { signatureSecret: "another" }],
    ["enabled", { enabled: true }],
  ])("whose owner sets %s again gets at once what waits for a later attempt", async (_what, change) => {
    const world = await webhookWorld();
    const delivering = world.process();
    const receiver = await startReceiver();
    const broken = await startReceiver(status(500));
    const { id } = await world.webhook(broken.url);
    await world.event("i1");
    await delivering.settle();
    await world.event("i1");
    await delivering.settle();
    const { updateWebhook } = createWebhookHandlers({
      store: world.store,
      addresses: targetAddresses("127.0.0.0/8"),
      limit: 1,
      wake: () => delivering.wake(),
    });
    const ask = (body: object) =>
      updateWebhook({ params: { webhookID: id }, body } as never, { caller: { id: PROJECT } } as never);
    await ask({ name: "other" });
    await delivering.settle();
    expect([broken.got.length, receiver.got.length]).toEqual([1, 0]);
    await ask("url" in change ? { url: receiver.url } : change);
    await delivering.settle();
    const tried = [broken.got.length, receiver.got.length];
    expect(tried).toEqual("url" in change ? [1, 2] : [2, 0]);
  });

  test("is disabled by a 410, with an event, and its other deliveries wait until it is enabled", async () => {
    const world = await webhookWorld();
    const delivering = world.process();
    const receiver = await startReceiver(status(410));
    const watching = await startReceiver();
    const webhook = await world.webhook(receiver.url);
    await world.webhook(watching.url, ["webhook.disabled"]);
    await world.event("i1");
    await world.event("i1");
    await delivering.settle();
    await delivering.settle();
    expect(receiver.got).toHaveLength(1);
    const shown = { enabled: false, disabledReason: "gone", disabledAt: world.clock.at };
    expect(await world.store.webhooks.get(PROJECT, webhook.id)).toMatchObject(shown);
    expect(watching.got.map(({ event }) => event)).toMatchObject([
      { type: "webhook.disabled", eventData: { webhook_id: webhook.id, reason: "gone", name: "n" } },
    ]);
    // Events while it is disabled are not kept for it.
    await world.event("i2");
    receiver.answer(accept);
    world.clock.at += 60 * MINUTE_MS;
    await delivering.settle();
    expect(receiver.got).toHaveLength(1);
    await world.store.webhooks.change(PROJECT, webhook.id, { enabled: true });
    await delivering.settle();
    expect(receiver.got.slice(1).map(({ event }) => event.sandboxId)).toEqual(["i1", "i1"]);
    expect(await world.store.webhooks.get(PROJECT, webhook.id)).toMatchObject({ disabledReason: undefined });
  });

  test("is not disabled by the first failure of another URL, however long the one before failed", async () => {
    const world = await webhookWorld({ disableMs: 2 * DAY_MS });
    const delivering = world.process();
    const receiver = await startReceiver(status(500));
    const other = await startReceiver(status(503));
    const { id } = await world.webhook(receiver.url);
    await world.event("i1");
    await delivering.settle();
    const failingSince = world.clock.at;
    const failing = { enabled: true, failingSince };
    world.clock.at += 3 * DAY_MS;
    expect(await world.store.webhooks.change(PROJECT, id, { url: receiver.url, name: "other" })).toMatchObject(failing);
    const moved = await world.store.webhooks.change(PROJECT, id, { url: other.url });
    expect([moved?.enabled, moved?.failingSince]).toEqual([true, undefined]);
    await world.event("i2");
    await delivering.settle();
    expect(other.got.length).toBeGreaterThan(0);
    expect(await world.store.webhooks.get(PROJECT, id)).toMatchObject({ enabled: true, failingSince: world.clock.at });
  });

  test.each([410, 500])(
    "with a new URL has nothing of a %i of the one before, which was asked already",
    async (code) => {
      const world = await webhookWorld();
      const delivering = world.process();
      const [former, receiver] = [await startReceiver(), await startReceiver()];
      const { id } = await world.webhook(former.url);
      former.answer((response) => {
        const moved = world.store.webhooks.change(PROJECT, id, { url: receiver.url });
        void moved.then(() => response.writeHead(code).end());
      });
      await world.event("i1");
      await delivering.settle();
      expect([former.got.length, receiver.got.length]).toEqual([1, 1]);
      const untouched = { enabled: true, failingSince: undefined, disabledReason: undefined };
      expect(await world.store.webhooks.get(PROJECT, id)).toMatchObject(untouched);
      expect(await world.deliveries(id)).toMatchObject([{ status: "delivered", attempts: 2 }]);
    },
  );

  test("with a new secret is asked at once again where the one before was refused meanwhile", async () => {
    const world = await webhookWorld();
    const delivering = world.process();
    const receiver = await startReceiver();
    const { id } = await world.webhook(receiver.url);
    receiver.answer((response) => {
      receiver.answer(accept);
      const changed = world.store.webhooks.change(PROJECT, id, { secret: "another" });
      void changed.then(() => response.writeHead(401).end());
    });
    await world.event("i1");
    await delivering.settle();
    expect(receiver.got).toHaveLength(2);
    expect(await world.store.webhooks.get(PROJECT, id)).toMatchObject({ enabled: true, failingSince: undefined });
    expect(await world.deliveries(id)).toMatchObject([{ status: "delivered", attempts: 2 }]);
  });

  test("is disabled after days of failure, and not after days with a success", async () => {
    const world = await webhookWorld({ disableMs: 2 * DAY_MS });
    const delivering = world.process();
    const receiver = await startReceiver(status(500));
    const webhook = await world.webhook(receiver.url);
    const stateAfter = async (days: number) => {
      for (let hour = 0; hour < days * 24; hour += 4) {
        await world.event("i1");
        await delivering.settle();
        world.clock.at += 4 * 60 * MINUTE_MS;
      }
      return world.store.webhooks.get(PROJECT, webhook.id);
    };
    expect(await stateAfter(1)).toMatchObject({ enabled: true });
    receiver.answer(accept);
    await delivering.settle();
    receiver.answer(status(500));
    expect(await stateAfter(1.5)).toMatchObject({ enabled: true });
    expect(await stateAfter(1)).toMatchObject({ enabled: false, disabledReason: "failing" });
    expect((await world.events()).filter(({ type }) => type === "webhook.disabled")).toHaveLength(1);
  });
});

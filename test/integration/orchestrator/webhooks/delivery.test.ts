/** Deliveries to real receivers under a clock that the test moves: each event at least once, in order for each sandbox. */

import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { accept, type Received, type Reply, startReceiver, status } from "../../../support/webhooks/receiver.ts";
import { PROJECT, SECRET, webhookWorld } from "../../../support/webhooks/world.ts";

const MINUTE_MS = 60_000;

const idsOf = (got: readonly Received[]) => got.map(({ event }) => event.id);

function hold(): { readonly reply: Reply; readonly release: () => void; readonly held: () => number } {
  const waiting: (() => void)[] = [];
  return {
    reply: (response) => void waiting.push(() => response.end()),
    release: () => waiting.splice(0).forEach((end) => end()),
    held: () => waiting.length,
  };
}

describe("order", () => {
  test("events of one sandbox arrive one after the other, those of others beside them, and a slow receiver holds up no other", async () => {
    const world = await webhookWorld();
    const delivering = world.process();
    const held = hold();
    const [slow, quick] = [await startReceiver(held.reply), await startReceiver()];
    await world.webhook(slow.url);
    await world.webhook(quick.url);
    for (const type of ["created", "updated", "paused"] as const) {
      for (const id of ["i1", "i2", "i3"]) await world.event(id, type);
    }
    delivering.wake();
    await expect.poll(() => quick.got.length).toBe(9);
    // Three sandboxes, one attempt each.
    await expect.poll(held.held).toBe(3);
    expect(new Set(slow.got.map(({ event }) => event.sandboxId))).toEqual(new Set(["i1", "i2", "i3"]));
    while (slow.got.length < 9 || held.held() > 0) {
      held.release();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await delivering.settle();
    const all = await world.events();
    for (const { got } of [slow, quick]) {
      for (const id of ["i1", "i2", "i3"]) {
        const wanted = all.filter((event) => event.sandbox_id === id).map((event) => event.id);
        expect(idsOf(got.filter(({ event }) => event.sandboxId === id))).toEqual(wanted);
      }
    }
  });

  test("at most eight attempts of one webhook are under way", async () => {
    const world = await webhookWorld();
    const delivering = world.process();
    const held = hold();
    const receiver = await startReceiver(held.reply);
    await world.webhook(receiver.url);
    for (let i = 0; i < 20; i++) await world.event(`i${i}`);
    delivering.wake();
    await expect.poll(held.held).toBe(8);
    receiver.answer(accept);
    held.release();
    await expect.poll(() => new Set(idsOf(receiver.got)).size).toBe(20);
  });
});

test("a receiver that fails for an hour gets every event afterwards, in order, signed anew, and with the same id each time", async () => {
  const world = await webhookWorld();
  const delivering = world.process();
  const receiver = await startReceiver(status(503));
  const webhook = await world.webhook(receiver.url);
  for (let i = 0; i < 4; i++) {
    for (const id of ["i1", "i2"]) await world.event(id, "updated", { i });
  }
  const until = world.clock.at + 60 * MINUTE_MS;
  while (world.clock.at < until) {
    await delivering.settle();
    world.clock.at += MINUTE_MS;
  }
  // The first of each sandbox only, some ten times.
  const before = receiver.got.length;
  expect(new Set(idsOf(receiver.got)).size).toBe(2);
  expect(before).toBeGreaterThan(12);
  expect(before).toBeLessThan(30);
  expect(await world.store.webhooks.get(PROJECT, webhook.id)).toMatchObject({ enabled: true });

  receiver.answer(accept);
  world.clock.at += 60 * MINUTE_MS;
  await delivering.settle();
  const got = receiver.got.slice(before);
  const all = await world.events();
  for (const id of ["i1", "i2"]) {
    const wanted = all.filter((event) => event.sandbox_id === id).map((event) => event.id);
    expect(idsOf(got.filter(({ event }) => event.sandboxId === id))).toEqual(wanted);
  }
  const own = receiver.got.filter(({ event }) => event.id === all[0]?.id);
  expect(new Set(own.map(({ headers }) => headers["webhook-id"]))).toEqual(new Set([all[0]?.id]));
  expect(new Set(own.map(({ headers }) => headers["webhook-timestamp"])).size).toBe(own.length);
  expect(await world.store.webhooks.get(PROJECT, webhook.id)).toMatchObject({ failingSince: undefined });
  expect(await world.store.deliveries.countPending()).toBe(0);
});

test("once a receiver works again, what waited for later attempts is sent at once", async () => {
  const world = await webhookWorld();
  const delivering = world.process();
  const receiver = await startReceiver(status(500));
  await world.webhook(receiver.url);
  for (const id of ["i1", "i2", "i3", "i4", "i5", "i6"]) await world.event(id);
  for (let i = 0; i < 6; i++) {
    await delivering.settle();
    world.clock.at += 5 * MINUTE_MS;
  }
  await delivering.settle();
  receiver.answer(accept);
  const before = receiver.got.length;
  await world.event("i7");
  await delivering.settle();
  await delivering.settle();
  expect(new Set(receiver.got.slice(before).map(({ event }) => event.sandboxId)).size).toBe(7);
});

test("a delivery is given up a day after its event, and the next one of the sandbox is tried", async () => {
  const world = await webhookWorld();
  const delivering = world.process();
  const receiver = await startReceiver(status(500));
  const webhook = await world.webhook(receiver.url);
  await world.event("i1", "created");
  await world.event("i1", "killed");
  for (let hour = 0; hour < 25; hour++) {
    await delivering.settle();
    world.clock.at += 60 * MINUTE_MS;
  }
  await delivering.settle();
  expect(new Set(receiver.got.map(({ event }) => event.type))).toEqual(
    new Set(["sandbox.lifecycle.created", "sandbox.lifecycle.killed"]),
  );
  expect(await world.deliveries(webhook.id)).toMatchObject([
    { status: "failed", error_class: "http_status", http_status: 500 },
    { status: "failed", error_class: "http_status", http_status: 500 },
  ]);
});

test("Retry-After moves the next attempt", async () => {
  const world = await webhookWorld();
  const delivering = world.process();
  const receiver = await startReceiver(status(429, { "retry-after": "600" }));
  const webhook = await world.webhook(receiver.url);
  await world.event("i1");
  await delivering.settle();
  expect((await world.deliveries(webhook.id))[0]?.due_at).toBe(world.clock.at + 10 * MINUTE_MS);
});

describe("several processes", () => {
  test("share the deliveries and repeat none", async () => {
    const world = await webhookWorld();
    const processes = [world.process(), world.process(), world.process()];
    const receiver = await startReceiver();
    await world.webhook(receiver.url);
    for (let i = 0; i < 40; i++) await world.event(`i${i % 5}`, "updated", { i });
    await Promise.all(processes.map((each) => each.settle()));
    expect(idsOf(receiver.got).toSorted()).toEqual((await world.events()).map(({ id }) => id).toSorted());
  });

  test("look at the webhooks of the projects that have events, and at all from time to time", async () => {
    const world = await webhookWorld();
    const webhook = await world.webhook("https://example.com/");
    await world.event("i1");
    const { deliveries } = world.store;
    const due = [{ id: webhook.id, projectId: PROJECT, failures: 0 }];
    expect([await deliveries.due(), await deliveries.due(["x", PROJECT])]).toEqual([due, due]);
    expect(await deliveries.due(["x"])).toEqual([]);
  });

  test("repeat the delivery of one that died, once its claim ends, and only the newer claim counts", async () => {
    const world = await webhookWorld();
    const receiver = await startReceiver();
    const webhook = await world.webhook(receiver.url);
    await world.event("i1");
    const dead = await world.store.deliveries.claim(webhook.id, 1_000);
    if (dead === undefined) throw new Error("nothing was due");
    const delivering = world.process();
    await delivering.settle();
    expect(receiver.got).toHaveLength(0);
    world.clock.at += 1_000;
    await delivering.settle();
    expect(receiver.got).toHaveLength(1);
    const late = await world.store.deliveries.finish(dead, { is: "failed" }, { at: 1, durationMs: 1 });
    expect(late).toBeUndefined();
    expect(await world.deliveries(webhook.id)).toMatchObject([{ status: "delivered", attempts: 2 }]);
  });

  test("do not repeat an attempt of their own whose claim ended because they are busy", async () => {
    const world = await webhookWorld();
    const held = hold();
    const receiver = await startReceiver(held.reply);
    const webhook = await world.webhook(receiver.url);
    const delivering = world.process();
    await world.event("i1");
    delivering.wake();
    await expect.poll(held.held).toBe(1);
    world.clock.at += 10 * MINUTE_MS;
    await world.event("i2");
    delivering.wake();
    await expect.poll(held.held).toBe(2);
    held.release();
    await delivering.settle();
    expect(receiver.got.map(({ event }) => event.sandboxId)).toEqual(["i1", "i2"]);
    expect(await world.deliveries(webhook.id)).toMatchObject([
      { status: "delivered", attempts: 1 },
      { status: "delivered", attempts: 1 },
    ]);
  });

  test("that stop wait for an attempt under way, and begin no other", async () => {
    const world = await webhookWorld();
    const held = hold();
    const receiver = await startReceiver(held.reply);
    const webhook = await world.webhook(receiver.url);
    const delivering = world.process({ stopMs: 60_000 });
    await world.event("i1");
    await world.event("i1");
    delivering.wake();
    await expect.poll(held.held).toBe(1);
    const stopped = delivering.stop();
    held.release();
    await stopped;
    const ends = (await world.deliveries(webhook.id)).map(({ status: is, claim }) => [is, claim]);
    expect(ends).toEqual([
      ["pending", null],
      ["delivered", null],
    ]);
  });

  test("that stop give back an attempt that takes too long, so that the next process need not wait", async () => {
    const world = await webhookWorld();
    const receiver = await startReceiver(() => undefined);
    const webhook = await world.webhook(receiver.url);
    const delivering = world.process({ stopMs: 0 });
    await world.event("i1");
    delivering.wake();
    await expect.poll(() => receiver.got.length).toBe(1);
    await delivering.stop();
    expect(await world.deliveries(webhook.id)).toMatchObject([
      { status: "pending", claim: null, due_at: world.clock.at },
    ]);
  });
});

test("signatures of deliveries pass the library of Standard Webhooks", async () => {
  const world = await webhookWorld();
  const receiver = await startReceiver();
  await world.webhook(receiver.url);
  await world.event("i1", "created", { note: "ü" });
  await world.process().settle();
  const [received] = receiver.got;
  if (received === undefined) throw new Error("nothing was delivered");
  const verified = new Webhook(SECRET).verify(received.body, received.headers as Record<string, string>);
  expect(verified).toMatchObject({ type: "sandbox.lifecycle.created", sandboxId: "i1", sandbox_id: "i1" });
});

test("once a webhook that was disabled for a day is enabled, what is younger than a day is sent, and so are new events", async () => {
  const world = await webhookWorld();
  const delivering = world.process();
  const receiver = await startReceiver();
  const webhook = await world.webhook(receiver.url);
  await world.event("i1", "created");
  world.clock.at += 60 * MINUTE_MS;
  await world.event("i1", "paused");
  await world.store.webhooks.change(PROJECT, webhook.id, { enabled: false });
  expect(await world.store.deliveries.abandon(world.clock.at, 10)).toBe(1);
  await delivering.settle();
  expect(receiver.got).toHaveLength(0);
  await world.store.webhooks.change(PROJECT, webhook.id, { enabled: true });
  await world.event("i1", "killed");
  await delivering.settle();
  expect(receiver.got.map(({ event }) => event.type)).toEqual(["sandbox.lifecycle.paused", "sandbox.lifecycle.killed"]);
});

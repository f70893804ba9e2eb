/** The delivery log: what it keeps of attempts, and its bounds. */

import { expect, test } from "vitest";
import { earlierAttempts } from "../../../../orchestrator/store/webhooks/attempts.ts";
import { accept, startReceiver, status } from "../../../support/webhooks/receiver.ts";
import { PROJECT, webhookWorld } from "../../../support/webhooks/world.ts";

const MINUTE_MS = 60_000;

test("the log is bounded by time and number, and keeps what has not ended", async () => {
  const world = await webhookWorld();
  const delivering = world.process();
  const receiver = await startReceiver();
  const webhook = await world.webhook(receiver.url);
  for (let i = 0; i < 6; i++) {
    await world.event(`i${i}`);
    await delivering.settle();
    world.clock.at += 1_000;
  }
  receiver.answer(status(500));
  await world.event("i9");
  await delivering.settle();
  const { deliveries } = world.store;
  expect(await deliveries.forget({ before: world.clock.at - 5_000, keep: 100, limit: 10 })).toBe(1);
  expect(await deliveries.forget({ before: 0, keep: 3, limit: 10 })).toBe(2);
  expect((await world.deliveries(webhook.id)).map(({ status: is }) => is)).toEqual([
    "pending",
    "delivered",
    "delivered",
    "delivered",
  ]);
  await world.store.webhooks.change(PROJECT, webhook.id, { enabled: false });
  expect(await deliveries.abandon(world.clock.at + 1, 10)).toBe(1);
  expect(await deliveries.countPending()).toBe(0);
});

test("the log keeps the beginning of what was answered to an earlier attempt, without secrets", async () => {
  const world = await webhookWorld();
  const delivering = world.process();
  const body = `"token": "hunter2" ${"\u{1F642}".repeat(600)}`;
  const receiver = await startReceiver((response) => void response.writeHead(502).end(body));
  const webhook = await world.webhook(receiver.url);
  await world.event("i1");
  await delivering.settle();
  world.clock.at += MINUTE_MS;
  receiver.answer(accept);
  await delivering.settle();
  const [row] = await world.deliveries(webhook.id);
  const [attempt, ...others] = row === undefined ? [] : earlierAttempts(row);
  expect(others).toEqual([]);
  expect(attempt).toMatchObject({ httpStatus: 502, error: expect.stringContaining("502") as string });
  const answer = attempt?.responseBody ?? "";
  expect(answer).toMatch(/^"token": "\[redacted\]" (?:\u{1F642}){100,}…$/u);
  expect(answer.length).toBeLessThanOrEqual(256);
});

test("the answers to earlier attempts are bounded in all, and the oldest attempts lose theirs first", async () => {
  const world = await webhookWorld();
  const delivering = world.process();
  const receiver = await startReceiver((response) => void response.writeHead(502).end("x".repeat(4_000)));
  const webhook = await world.webhook(receiver.url);
  await world.event("i1");
  for (let i = 0; i < 20; i++) {
    await delivering.settle();
    world.clock.at += 60 * MINUTE_MS;
  }
  const [row] = await world.deliveries(webhook.id);
  const earlier = row === undefined ? [] : earlierAttempts(row);
  expect(earlier).toHaveLength(19);
  const withAnswer = earlier.map(({ responseBody }) => responseBody !== undefined);
  expect(withAnswer.slice(0, 2)).toEqual([false, false]);
  expect(withAnswer.slice(-14)).toEqual(Array.from({ length: 14 }, () => true));
  expect(earlier.map(({ httpStatus }) => httpStatus)).toEqual(Array.from({ length: 19 }, () => 502));
  expect(row?.earlier?.length).toBeLessThan(8_000);
});

test("the log keeps the earlier attempts of a delivery, also one whose process died, up to fifty", async () => {
  const world = await webhookWorld();
  const delivering = world.process();
  const receiver = await startReceiver(status(503));
  const webhook = await world.webhook(receiver.url);
  await world.event("i1");
  const begun = world.clock.at;
  const logged = async () => {
    const [row] = await world.deliveries(webhook.id);
    if (row === undefined) throw new Error("the log has no delivery");
    return { ...row, earlier: earlierAttempts(row) };
  };
  await delivering.settle();
  expect(await logged()).toMatchObject({ attempts: 1, http_status: 503, earlier: [] });
  world.clock.at += MINUTE_MS;
  await world.store.deliveries.claim(webhook.id, 1_000);
  expect(await logged()).toMatchObject({ attempts: 2, http_status: null, error_class: null, duration_ms: null });
  world.clock.at += MINUTE_MS;
  receiver.answer(accept);
  await delivering.settle();
  const failed = { at: begun, durationMs: expect.any(Number) as number, httpStatus: 503, errorClass: "http_status" };
  expect(await logged()).toMatchObject({
    attempts: 3,
    status: "delivered",
    http_status: 200,
    attempted_at: begun + 2 * MINUTE_MS,
    earlier: [failed, { at: begun + MINUTE_MS }],
  });

  await world.event("i2");
  for (let i = 0; i < 60; i++) {
    await world.store.deliveries.claim(webhook.id, 1_000);
    world.clock.at += 1_000;
  }
  const { attempts, earlier } = await logged();
  expect([attempts, earlier.length]).toEqual([60, 50]);
  expect(earlier.at(-1)?.at).toBe(world.clock.at - 2_000);
});

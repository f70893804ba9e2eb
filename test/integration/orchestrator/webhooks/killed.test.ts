/**
 * Events while the orchestrator is killed (SIGKILL) again and again, until the last one is delivered: each is delivered at least
 * once, those of one sandbox in order, and none that is not in the database. SVC_WEBHOOK_EVENTS=10000 makes as many, and tells
 * how many kills and repetitions there were.
 */

import { afterAll, beforeAll, expect, test } from "vitest";
import { type MortalCluster, startMortalCluster } from "../../../support/cluster/mortal-cluster.ts";
import { type Receiver, startReceiver } from "../../../support/webhooks/receiver.ts";

const EVENTS = Number(process.env["SVC_WEBHOOK_EVENTS"] ?? "300");
const SANDBOXES = 10;
/** A process that listens is killed after this time, or once it has delivered this share of the events. */
const KILL_MS = 4_000;
const KILL_SHARE = 1 / 4;
const LIMIT_MS = 120_000 + EVENTS * 120;

let cluster: MortalCluster;
let receiver: Receiver;
beforeAll(async () => {
  cluster = await startMortalCluster({
    SVC_WEBHOOK_ALLOW: "127.0.0.1",
    // A claim of a killed process ends after this and a second; on a busy machine a receiver takes long to answer.
    SVC_WEBHOOK_TIMEOUT_MS: "1000",
    SVC_LOG_LEVEL: "info",
  });
  receiver = await startReceiver(undefined, { shared: true });
}, 120_000);
afterAll(async () => {
  await cluster.stop();
  await receiver.stop();
}, 60_000);

test("every event is delivered at least once, in the order of its sandbox, and none is invented", {
  timeout: LIMIT_MS,
}, async () => {
  const { orchestrator } = cluster;
  const types = ["created", "updated"].map((type) => `sandbox.lifecycle.${type}`);
  await cluster.insist("POST", "/events/webhooks", {
    name: "w",
    url: receiver.url,
    events: types,
    signatureSecret: "s",
  });
  const ids = await Promise.all(
    Array.from({ length: SANDBOXES }, async () => {
      const body = { templateID: "base", timeout: 3_000 };
      return (await cluster.insist<{ sandboxID: string }>("POST", "/v2/sandboxes", body)).sandboxID;
    }),
  );

  const begun = performance.now();
  const progress = { made: 0, kills: 0 };
  const distinct = () => new Set(receiver.got.map(({ event }) => event.id)).size;
  const maker = async (id: string) => {
    while (progress.made < EVENTS) {
      progress.made++;
      await cluster.insist("POST", `/sandboxes/${id}/timeout`, { timeout: 3_600 + progress.made });
    }
  };
  const killer = async () => {
    while (distinct() < EVENTS) {
      const until = performance.now() + KILL_MS;
      const enough = Math.min(EVENTS, distinct() + EVENTS * KILL_SHARE);
      while (performance.now() < until && distinct() < enough) await new Promise((resolve) => setTimeout(resolve, 20));
      await orchestrator.killAndStart();
      progress.kills++;
    }
  };
  await Promise.all([...ids.map(maker), killer()]);

  const wanted = await orchestrator.database.query("select id, sandbox_id from events order by sequence");
  expect(wanted.length).toBeGreaterThanOrEqual(EVENTS);
  expect(progress.kills).toBeGreaterThanOrEqual(3);
  const known = new Set(wanted.map(({ id }) => id));
  await expect.poll(distinct, { timeout: LIMIT_MS }).toBe(known.size);
  const seconds = Math.round((performance.now() - begun) / 1000);
  const repeated = receiver.got.length - known.size;
  if (EVENTS > 300) console.info(`${known.size} events, ${progress.kills} kills, ${repeated} repeated, ${seconds} s`);
  expect(receiver.got.filter(({ event }) => !known.has(event.id))).toEqual([]);
  for (const id of ids) {
    // An event that was delivered before a kill may arrive again: the first time counts.
    const first = new Set(receiver.got.filter(({ event }) => event.sandboxId === id).map(({ event }) => event.id));
    expect([...first]).toEqual(wanted.filter((event) => event["sandbox_id"] === id).map((event) => event["id"]));
  }
});

/**
 * Two processes with several connections each to one database on a server, while events are made. Connections to one SQLite
 * file would wait for each other inside this one process. That is about 940 transactions, whose time is not what is tested: a
 * busy machine takes a minute.
 */

import { expect, onTestFinished, test } from "vitest";
import { createStore } from "../../../../orchestrator/store/store.ts";
import { targetAddresses } from "../../../../orchestrator/webhooks/addresses.ts";
import { startDelivering } from "../../../../orchestrator/webhooks/delivering.ts";
import { createSend } from "../../../../orchestrator/webhooks/send.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { startPostgres } from "../../../support/postgres/cluster.ts";
import { newDatabase, openBeside } from "../../../support/store/databases.ts";
import { sandboxRecord } from "../../../support/store/sandbox-records.ts";
import { testSeal } from "../../../support/store/test-seal.ts";
import { startReceiver } from "../../../support/webhooks/receiver.ts";
import { LIFECYCLE, PROJECT, SECRET } from "../../../support/webhooks/world.ts";

const log = createLog({ component: "test", level: "silent" });
const EVENTS = 120;
const SANDBOXES = 6;

test("two processes on one database deliver each event once, in the order of its sandbox", {
  timeout: 240_000,
}, async () => {
  const shared = process.env["SVC_TEST_POSTGRES"];
  const own = shared === undefined ? await startPostgres() : undefined;
  if (own !== undefined) onTestFinished(() => own.stop());
  const database = await newDatabase({ server: own?.url ?? shared ?? null });
  onTestFinished(() => database.drop());
  const opened = await Promise.all([openBeside(database.place), openBeside(database.place)]);
  const processes = opened.map((own) => {
    const store = createStore(own.database, Date.now, testSeal);
    const shares: string[] = [];
    const delivering = startDelivering({
      store,
      send: createSend({ addresses: targetAddresses("127.0.0.0/8"), now: Date.now, timeoutMs: 60_000 }),
      now: Date.now,
      random: Math.random,
      log,
      timeoutMs: 60_000,
      disableMs: 0,
      observe: (result) => void shares.push(result),
    });
    onTestFinished(() => delivering.stop().then(() => own.close()));
    return { store, delivering, shares };
  });
  const [one, two] = processes;
  if (one === undefined || two === undefined) throw new Error("there are two processes");
  const receiver = await startReceiver();
  const { store } = one;
  await store.webhooks.add(
    { projectId: PROJECT, name: "n", url: receiver.url, events: LIFECYCLE, enabled: true, secret: SECRET },
    1,
  );
  for (let i = 0; i < EVENTS; i++) {
    const by = i % 2 === 0 ? one : two;
    await by.store.addEvent(sandboxRecord({ id: `i${i % SANDBOXES}`, projectId: PROJECT }), { type: "updated" });
    one.delivering.wake(PROJECT);
    two.delivering.wake(PROJECT);
  }
  await expect.poll(() => receiver.got.length, { timeout: 180_000 }).toBe(EVENTS);
  await Promise.all(processes.map(({ delivering }) => delivering.settle()));
  const all = await store.events.read(PROJECT, {}, { limit: EVENTS, ascending: true });
  for (let i = 0; i < SANDBOXES; i++) {
    const wanted = all.filter((event) => event.sandbox_id === `i${i}`).map(({ id }) => id);
    const got = receiver.got.filter(({ event }) => event.sandboxId === `i${i}`).map(({ event }) => event.id);
    expect(got).toEqual(wanted);
  }
  expect(one.shares.length + two.shares.length).toBe(EVENTS);
  expect(Math.min(one.shares.length, two.shares.length)).toBeGreaterThan(0);
});

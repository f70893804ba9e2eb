/**
 * Events while the orchestrator is killed (SIGKILL) again and again: each is delivered at least once, those of one sandbox in
 * order, and none that is not in the database. SVC_WEBHOOK_EVENTS=10000 makes as many, with a kill for each 500 of them.
 */

import { afterAll, beforeAll, expect, test } from "vitest";
import { nodeToken } from "../../../../shared/agent-api/node-tokens.ts";
import { ADMIN_TOKEN, NODE_KEY } from "../../../support/fakes/cluster.ts";
import { startFakeAgent } from "../../../support/fakes/fake-agent.ts";
import type { FakeAgent } from "../../../support/fakes/fake-agent-shapes.ts";
import { type MortalOrchestrator, startMortalOrchestrator } from "../../../support/webhooks/mortal-orchestrator.ts";
import { type Receiver, startReceiver } from "../../../support/webhooks/receiver.ts";

const EVENTS = Number(process.env["SVC_WEBHOOK_EVENTS"] ?? "300");
const KILLS = Math.max(3, EVENTS / 500);
const SANDBOXES = 10;
const LIMIT_MS = 120_000 + EVENTS * 120;

let orchestrator: MortalOrchestrator;
let agent: FakeAgent;
let receiver: Receiver;
beforeAll(async () => {
  orchestrator = await startMortalOrchestrator({
    SVC_WEBHOOK_ALLOW: "127.0.0.1",
    // A claim of a killed process ends after this and a second; on a busy machine a receiver takes long to answer.
    SVC_WEBHOOK_TIMEOUT_MS: "1000",
    SVC_LOG_LEVEL: "info",
    SVC_RATE_LIMIT_WRITE_PER_SECOND: "100000",
  });
  receiver = await startReceiver(undefined, { shared: true });
  agent = await startFakeAgent({
    orchestratorUrl: orchestrator.url,
    nodeId: "n1",
    nodeToken: nodeToken(NODE_KEY, "n1", "from node"),
    orchestratorToken: nodeToken(NODE_KEY, "n1", "to node"),
  });
}, 120_000);
afterAll(async () => {
  await agent.stop();
  await orchestrator.stop();
  await receiver.stop();
}, 60_000);

/** Asks until the orchestrator answers. */
async function ask<T>(
  method: string,
  path: string,
  body: object,
  headers: Readonly<Record<string, string>>,
): Promise<T> {
  for (;;) {
    try {
      const response = await fetch(`${orchestrator.url}${path}`, {
        method,
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
      const text = await response.text();
      if (response.status < 300) return (text === "" ? undefined : JSON.parse(text)) as T;
      if (response.status < 500) throw new RangeError(`${method} ${path}: ${response.status} ${text}`);
    } catch (error) {
      if (error instanceof RangeError) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("every event is delivered at least once, in the order of its sandbox, and none is invented", {
  timeout: LIMIT_MS,
}, async () => {
  const admin = { "x-admin-token": ADMIN_TOKEN };
  const { teamID } = await ask<{ teamID: string }>("POST", "/admin/projects", { name: "killed" }, admin);
  const { key } = await ask<{ key: string }>("POST", `/admin/teams/${teamID}/api-keys`, { name: "k" }, admin);
  const own = { "x-api-key": key };
  const types = ["created", "updated"].map((type) => `sandbox.lifecycle.${type}`);
  await ask("POST", "/events/webhooks", { name: "w", url: receiver.url, events: types, signatureSecret: "s" }, own);
  const ids = await Promise.all(
    Array.from({ length: SANDBOXES }, async () => {
      const made = await ask<{ sandboxID: string }>(
        "POST",
        "/v2/sandboxes",
        { templateID: "base", timeout: 3_000 },
        own,
      );
      return made.sandboxID;
    }),
  );

  const progress = { made: 0 };
  const maker = async (id: string) => {
    while (progress.made < EVENTS) {
      progress.made++;
      await ask("POST", `/sandboxes/${id}/timeout`, { timeout: 3_600 + progress.made }, own);
    }
  };
  const killer = async () => {
    for (let kill = 1; kill <= KILLS; kill++) {
      const after = (EVENTS * kill) / (KILLS + 1);
      await expect.poll(() => receiver.got.length, { timeout: LIMIT_MS, interval: 5 }).toBeGreaterThan(after);
      await orchestrator.killAndStart();
    }
  };
  await Promise.all([...ids.map(maker), killer()]);

  const wanted = await orchestrator.database.query("select id, sandbox_id from events order by sequence");
  expect(wanted.length).toBeGreaterThanOrEqual(EVENTS);
  const known = new Set(wanted.map(({ id }) => id));
  await expect
    .poll(() => new Set(receiver.got.map(({ event }) => event.id)).size, { timeout: LIMIT_MS })
    .toBe(known.size);
  expect(receiver.got.filter(({ event }) => !known.has(event.id))).toEqual([]);
  for (const id of ids) {
    // An event that was delivered before a kill may arrive again: the first time counts.
    const first = new Set(receiver.got.filter(({ event }) => event.sandboxId === id).map(({ event }) => event.id));
    expect([...first]).toEqual(wanted.filter((event) => event["sandbox_id"] === id).map((event) => event["id"]));
  }
});

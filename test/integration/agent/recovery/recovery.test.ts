/** An agent vanishes in the middle of its work, and the next agent recovers. The machine is in memory. */

import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSlots } from "../../../../agent/network/slots.ts";
import { recover } from "../../../../agent/recovery/apply.ts";
import { openStores } from "../../../../agent/store/stores.ts";
import { CLOSED } from "../../../../shared/policy/egress-policy.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { agentParts, build, resources, startRequest } from "../../../support/fakes/agent-parts.ts";
import { type FakeEngine, fakeEngine } from "../../../support/fakes/fake-engine.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-recovery-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const databasePath = () => join(directory, "agent.db");

/** Runs the next agent's first steps, until it has removed the leftovers. */
async function takeOver(engine: FakeEngine) {
  engine.fail(() => undefined);
  const stores = openStores(databasePath(), testSeal);
  const machine = engine.machine();
  const found = await recover({ machine, stores, now: Date.now, log });
  const slots = createSlots({ ...machine.network, log, ahead: 0, restMs: 1 });
  const kept = [...[...found.sandboxes, ...found.frozen].map(({ container }) => container), ...found.pooled];
  slots.adopt(
    kept.map(({ slot }) => slot.number),
    found.leftoverSlots,
    found.cleared,
  );
  await found.cleared;
  await expect.poll(() => engine.slots.size).toBe(kept.length);
  return { found, stores };
}

/** Makes this step never end, as if the agent were killed there; resolves when the agent reaches it. */
function vanishAt(engine: FakeEngine, step: string): Promise<void> {
  return new Promise((resolve) => {
    engine.fail((name) => {
      if (name !== step) return undefined;
      resolve();
      return new Promise(() => undefined);
    });
  });
}

const COLD = ["link", "pin", "create", "annotations", "start", "inspect", "ready", "init", "open"];

test.each(COLD)("an agent killed at %s of a cold start leaves nothing for the next one", async (step) => {
  const engine = fakeEngine();
  const parts = agentParts(engine, { databasePath: databasePath() });
  const vanished = vanishAt(engine, step);
  void parts.sandboxes.start(randomUUID(), startRequest()).catch(() => undefined);
  await vanished;
  const { found, stores } = await takeOver(engine);
  expect(found.sandboxes).toEqual([]);
  // A container that is ready and unclaimed is as good as a pooled one and may stay; everything else must be removed.
  expect(engine.containers.size).toBe(found.pooled.length);
  expect(engine.annotations.size).toBe(found.pooled.length);
  expect(stores.executions.all()).toEqual([]);
  expect(stores.executions.exits()).toEqual([]);
  expect(stores.containers.all()).toHaveLength(found.pooled.length);
  expect([...engine.firewall.values()].filter(({ open }) => open)).toEqual([]);
  stores.close();
});

test.each(["init", "open"])("an agent killed at %s of a warm claim does not leave a half sandbox", async (step) => {
  const engine = fakeEngine();
  const targets = [{ build, resources, size: 1 }];
  const parts = agentParts(engine, { databasePath: databasePath(), targets });
  await expect.poll(() => parts.pool.load()[0]?.ready).toBe(1);
  const [pooled] = engine.containers.keys();
  await parts.pool.stop();
  const vanished = vanishAt(engine, step);
  void parts.sandboxes.start(randomUUID(), startRequest()).catch(() => undefined);
  await vanished;
  const { found, stores } = await takeOver(engine);
  expect(found).toMatchObject({ sandboxes: [], pooled: [] });
  expect(engine.containers.has(pooled ?? "")).toBe(false);
  expect(stores.executions.all()).toEqual([]);
  stores.close();
});

test("a restarted agent restores the firewall rules first, then takes over running sandboxes and the frozen pool unchanged", async () => {
  const engine = fakeEngine();
  const targets = [{ build, resources, size: 2 }];
  const parts = agentParts(engine, { databasePath: databasePath(), targets });
  await expect.poll(() => parts.pool.load()[0]?.ready).toBe(2);
  const open = randomUUID();
  const closed = randomUUID();
  await parts.sandboxes.start(open, startRequest());
  await parts.sandboxes.start(closed, startRequest({ egress: CLOSED }));
  await expect.poll(() => parts.pool.load()[0]?.ready).toBe(2);
  await parts.pool.stop();
  const rules = [...engine.firewall.values()];
  const before = engine.steps.length;

  const { found, stores } = await takeOver(engine);
  expect(found.sandboxes.map(({ executionId }) => executionId).sort()).toEqual([open, closed].sort());
  expect(found.pooled).toHaveLength(2);
  expect(engine.containers.size).toBe(4);
  expect([...engine.firewall.values()].sort(byLink)).toEqual(rules.sort(byLink));
  expect(engine.steps.slice(before, before + 3)).toEqual(["prepare", "rebuild", "list"]);
  expect([...engine.containers.values()].filter(({ frozen }) => frozen)).toHaveLength(2);
  stores.close();
});

test("after a reboot every sandbox is reported as ended and nothing of it is left", async () => {
  const engine = fakeEngine();
  const parts = agentParts(engine, { databasePath: databasePath() });
  const id = randomUUID();
  await parts.sandboxes.start(id, startRequest());
  const [container] = engine.containers.keys();
  engine.die(container ?? "", { code: 255 });
  const { found, stores } = await takeOver(engine);
  expect(found).toMatchObject({ sandboxes: [], pooled: [] });
  expect(stores.executions.exits()).toMatchObject([{ executionId: id, reason: "exited", exitCode: 255 }]);
  expect(engine.containers.size).toBe(0);
  stores.close();
});

function byLink(a: { link: string }, b: { link: string }): number {
  return a.link.localeCompare(b.link);
}

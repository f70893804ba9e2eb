/** Copies of a template's memory for the pool, on a machine in memory. */

import { randomUUID } from "node:crypto";
import { afterEach, expect, test } from "vitest";
import { agentParts, build, type Parts, resources, startRequest } from "../../../support/fakes/agent-parts.ts";
import { type FakeEngine, fakeEngine } from "../../../support/fakes/fake-engine.ts";

const started: Parts[] = [];
afterEach(async () => {
  for (const parts of started.splice(0)) await parts.stop();
});

const flavour = { build, resources, runtime: "/runtime/1" };

async function setup(): Promise<{ engine: FakeEngine; parts: Parts; copy: () => ReturnType<Parts["copy"]> }> {
  const engine = fakeEngine();
  const parts = agentParts(engine);
  started.push(parts);
  const [executionId, snapshotId] = [randomUUID(), randomUUID()];
  await parts.sandboxes.start(executionId, startRequest());
  await parts.taker.checkpoint(executionId, { snapshotId, memory: true });
  await parts.sandboxes.stop(executionId);
  await parts.settled();
  const snapshot = parts.stores.snapshots.get(snapshotId);
  if (snapshot === undefined) throw new Error("not stored");
  return { engine, parts, copy: () => parts.copy(flavour, snapshot, new AbortController().signal) };
}

test("a copy has the requested flavour and a token of its own, is closed, and belongs to no execution", async () => {
  const { engine, parts, copy } = await setup();
  const [one, two] = [await copy(), await copy()];
  expect(one).toMatchObject(flavour);
  expect(one.controlToken).not.toBe(two.controlToken);
  expect(engine.containers.get(one.id)).toMatchObject({ watches: true, init: { controlToken: one.controlToken } });
  expect(engine.containers.get(one.id)?.restored).toBeDefined();
  expect([...engine.firewall.values()].every(({ open }) => !open)).toBe(true);
  expect(parts.stores.executions.all()).toEqual([]);
  expect(parts.stores.containers.all().map(({ build: of }) => of)).toEqual([build, build]);
});

test.each(["create", "link", "pin", "annotations", "memory annotations", "start", "inspect", "ready", "init"])(
  "a copy that fails at %s leaves nothing behind",
  async (failing) => {
    const { engine, parts, copy } = await setup();
    engine.fail((step) => {
      if (step === failing) throw new Error(`planned failure of ${step}`);
    });
    await expect(copy()).rejects.toThrow();
    engine.fail(() => undefined);
    await expect.poll(() => [...engine.containers.keys()]).toEqual([]);
    await expect.poll(() => [...engine.slots]).toEqual([]);
    expect([...engine.annotations.keys()]).toEqual([]);
    expect(parts.stores.containers.all()).toEqual([]);
  },
);

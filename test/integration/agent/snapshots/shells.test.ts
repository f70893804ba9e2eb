/** Copies that start in shells and fail or are cut off at every step: afterwards the original runs, and nothing of the copy is left. */

import { randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { startRequest } from "../../../support/fakes/agent-parts.ts";
import { machineForEach } from "../machine.ts";

const here = machineForEach();
const SLOW = { timeout: 20_000 };
/** Of a copy in a shell, in their order; `verify` runs beside others. */
const STEPS = [
  "give disk",
  "annotations",
  "prepare connections",
  "memory annotations",
  "call",
  "ready",
  "verify",
  "init",
  "open",
];

beforeEach(async () => {
  here.engine.shells.possible = true;
  await here.takeOver({ shells: 2 });
});

const names = () => [...here.engine.containers.values()].map(({ name }) => name.replace(/-[0-9a-f]{8}$/, ""));
const waiting = () => here.parts.shells.ids().length;

async function forked(): Promise<() => ReturnType<typeof here.parts.sandboxes.start>> {
  const { executionId } = await here.running();
  const body = { snapshotId: randomUUID(), memory: true, durable: false };
  const { snapshotId } = await here.parts.taker.checkpoint(executionId, body);
  await expect.poll(waiting, SLOW).toBe(1);
  const origin = { is: "snapshot" as const, snapshotId, memory: true };
  return () => here.parts.sandboxes.start(randomUUID(), startRequest({ origin }));
}

/** The original alone, and whatever waits. */
async function expectNothingOfCopy(): Promise<void> {
  const others = () => names().filter((name) => name !== "svc-shell");
  await expect.poll(others, SLOW).toHaveLength(1);
  expect(here.parts.stores.executions.all()).toHaveLength(1);
  expect(here.parts.stores.containers.all()).toHaveLength(1);
  await expect.poll(() => here.engine.slots.size - waiting(), SLOW).toBe(1);
  expect([...here.engine.firewall.values()].filter(({ open }) => open)).toHaveLength(1);
}

test("a copy starts in the shell that waits for it, with the container's own token, and another one is made", async () => {
  const copy = await forked();
  const [id] = here.parts.shells.ids();
  const starts = here.engine.steps.filter((step) => step === "start").length;
  const started = await copy();
  expect(started.restored).toBe("memory");
  const made = here.engine.containers.get(id ?? "");
  expect(made).toMatchObject({ running: true, watches: true });
  expect(made?.spec.env).toEqual([`SVC_ENVD_CONTROL=${made?.init?.controlToken}`]);
  expect(here.engine.steps.filter((step) => step === "start")).toHaveLength(starts);
  await expect.poll(waiting, SLOW).toBe(1);
  expect(here.parts.shells.ids()).not.toContain(id);
});

test.each(STEPS)("a copy that fails at %s leaves nothing of it, and its shell is not used again", async (step) => {
  const copy = await forked();
  const [id = ""] = here.parts.shells.ids();
  here.failAt(step);
  await expect(copy()).rejects.toThrow();
  here.engine.fail(() => undefined);
  await expectNothingOfCopy();
  expect(here.engine.containers.has(id)).toBe(false);
  expect((await copy()).restored).toBe("memory");
});

test.each(STEPS.filter((step) => step !== "verify"))(
  "a copy in which the agent is killed at %s leaves nothing of it",
  async (step) => {
    const copy = await forked();
    const vanished = here.vanishAt(step);
    void copy().catch(() => undefined);
    await vanished;
    // The agent is not dead in truth: nothing of it makes shells any more.
    await here.parts.shells.stop();
    await here.takeOver({ shells: 2 });
    await expect.poll(names, SLOW).toHaveLength(1);
    await expectNothingOfCopy();
  },
);

test("shells that wait go when the next agent begins", async () => {
  await forked();
  expect(names()).toHaveLength(2);
  await here.takeOver({ shells: 2 });
  await expect.poll(names, SLOW).toHaveLength(1);
});

test("a shell that has ended is replaced, and an agent that stops leaves none", async () => {
  await forked();
  const [id = ""] = here.parts.shells.ids();
  here.engine.die(id);
  expect(here.parts.shells.lost(id)).toBe(true);
  expect(here.parts.shells.lost(id)).toBe(false);
  await expect.poll(waiting, SLOW).toBe(1);
  expect(here.engine.containers.has(id)).toBe(false);
  await here.parts.stop();
  expect(names().filter((name) => name === "svc-shell")).toEqual([]);
});

test("a shell that cannot be made costs a copy nothing", async () => {
  const { executionId } = await here.running();
  here.failAt("shell annotations");
  const body = { snapshotId: randomUUID(), memory: true, durable: false };
  const { snapshotId } = await here.parts.taker.checkpoint(executionId, body);
  const origin = { is: "snapshot" as const, snapshotId, memory: true };
  const copy = await here.parts.sandboxes.start(randomUUID(), startRequest({ origin }));
  expect(copy.restored).toBe("memory");
  expect(waiting()).toBe(0);
  await expect.poll(names, SLOW).toHaveLength(2);
});

/** The pool of an agent on a machine in memory: the agent keeps containers ready, claims, replaces and removes them. */

import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test, vi } from "vitest";
import { agentParts, build, liveParts, resources, startRequest } from "../../../support/fakes/agent-parts.ts";
import { gateway } from "../../../support/runner/promises.ts";

const target = (size: number) => [{ build, resources, size }];

test("the pool keeps frozen, closed containers, and a claim thaws one and sets its identity", async () => {
  const { engine, parts } = liveParts({ targets: target(2) });
  await expect.poll(() => parts.pool.load()).toEqual([{ buildId: "b1", wanted: 2, ready: 2 }]);
  expect([...engine.containers.values()].map(({ frozen }) => frozen)).toEqual([true, true]);
  expect([...engine.firewall.values()].map(({ open }) => open)).toEqual([false, false]);
  const body = startRequest({ envs: { A: "1" } });
  const answer = await parts.sandboxes.start(randomUUID(), body);
  expect(answer.warm).toBe(true);
  expect(Object.keys(answer.times ?? {}).sort()).toEqual(["command", "init", "network", "run"]);
  const mine = [...engine.containers.values()].find(({ init }) => init !== undefined);
  expect(mine).toMatchObject({ frozen: false, init: { sandboxId: body.sandboxId, envVars: { A: "1" } } });
});

test("an empty pool is refilled while starts go on, and the fuller it is the longer it lets them pass", async () => {
  const { parts } = liveParts({ targets: target(4), lastForeground: () => Number.POSITIVE_INFINITY });
  const begun = performance.now();
  const at: number[] = [];
  await expect
    .poll(
      () => {
        const ready = parts.pool.load()[0]?.ready ?? 0;
        while (at.length < ready) at.push(performance.now() - begun);
        return ready;
      },
      { interval: 10, timeout: 20_000 },
    )
    .toBe(4);
  const [first = 0, second = 0, third = 0, fourth = 0] = at;
  // Nothing before the first, then a quarter, a half and three quarters of one and a half seconds. A machine that stands still for a
  // moment when one gets ready makes the next wait look shorter.
  expect(fourth - third).toBeGreaterThan(700);
  expect(fourth - third).toBeGreaterThan(second - first + 300);
  expect(first).toBeLessThan((fourth - first) / 2);
});

test("two claims at once never get the same container", async () => {
  const { parts } = liveParts({ targets: target(3) });
  await expect.poll(() => parts.pool.load()[0]?.ready).toBe(3);
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => parts.sandboxes.start(randomUUID(), startRequest())),
  );
  expect(new Set(answers.map(({ address }) => address)).size).toBe(6);
});

test("a pooled container that does not thaw is removed, and the start still succeeds", async () => {
  const { engine, parts } = liveParts({ targets: target(1) });
  await expect.poll(() => parts.pool.load()[0]?.ready).toBe(1);
  const [pooled] = engine.containers.keys();
  let refused = false;
  engine.fail((step) => {
    if (step !== "init" || refused) return;
    refused = true;
    throw new Error("it hangs");
  });
  const id = randomUUID();
  await parts.sandboxes.start(id, startRequest());
  expect(parts.sandboxes.get(id)?.container.id).not.toBe(pooled);
  await parts.settled();
  expect(engine.containers.has(pooled ?? "")).toBe(false);
});

test("a sandbox's container never goes back to the pool", async () => {
  const { engine, parts } = liveParts({ targets: target(1) });
  await expect.poll(() => parts.pool.load()[0]?.ready).toBe(1);
  const id = randomUUID();
  await parts.sandboxes.start(id, startRequest());
  const used = parts.sandboxes.get(id)?.container.id ?? "";
  await parts.sandboxes.stop(id);
  await expect.poll(() => parts.pool.load()[0]?.ready).toBe(1);
  await parts.settled();
  expect(parts.pool.ids()).not.toContain(used);
  await expect.poll(() => engine.containers.has(used)).toBe(false);
});

test("a cold start that waits takes a pooled container that becomes ready first", async () => {
  const { engine, parts } = liveParts({ coldAtOnce: 1 });
  const gate = gateway();
  let creates = 0;
  engine.fail((step) => (step === "create" && ++creates === 1 ? gate.promise : undefined));
  const first = parts.sandboxes.start(randomUUID(), startRequest());
  await expect.poll(() => creates).toBe(1);
  const second = parts.sandboxes.start(randomUUID(), startRequest());
  parts.pool.setTargets(target(1));
  expect((await second).warm).toBe(true);
  gate.resolve();
  const { warm, times } = await first;
  expect(warm).toBe(false);
  expect(Object.keys(times ?? {}).sort()).toEqual(["boot", "command", "init", "network", "run", "wait"]);
});

test("containers of other builds are pooled although those of one build cannot be started", async () => {
  const { engine, parts } = liveParts();
  engine.fail((step) => {
    const made = [...engine.containers.values()].at(-1);
    if (step === "start" && made?.spec.build.image === "missing") throw new Error("planned failure");
  });
  const missing = { ...build, buildId: "b2", image: "missing" };
  parts.pool.setTargets([{ build: missing, resources, size: 3 }, ...target(3)]);
  await expect.poll(() => parts.pool.load().map(({ ready }) => ready)).toEqual([0, 3]);
});

test("the pool shrinks when less is wanted", async () => {
  const { engine, parts } = liveParts({ targets: target(3) });
  await expect.poll(() => parts.pool.load()[0]?.ready).toBe(3);
  parts.pool.setTargets(target(1));
  await expect.poll(() => engine.containers.size).toBe(1);
});

test("a pool that must not fill gives up what is dropped, starts nothing, and fills again afterwards", async () => {
  const { engine, parts } = liveParts({ targets: target(2) });
  await expect.poll(() => parts.pool.load()[0]?.ready).toBe(2);
  const former = parts.pool.ids();
  parts.pool.setFilling(false);
  for (const id of [...former, "claimed meanwhile"]) await parts.pool.drop(id);
  await parts.settled();
  parts.pool.setTargets(target(2));
  expect([parts.pool.ids(), engine.containers.size]).toEqual([[], 0]);
  parts.pool.setFilling(true);
  await expect.poll(() => parts.pool.load()[0]?.ready).toBe(2);
  expect(parts.pool.ids()).not.toContain(former[0]);
});

/** An entry takes 14.2 MB here, and is expected to take 50.3 before one was measured. */
test.each([1, 2])(
  "a pool that starts %i at once keeps what its memory allows, and reports no more as wanted",
  async (refillsAtOnce) => {
    const { parts } = liveParts({ targets: target(5), poolBytes: 55_000_000, refillsAtOnce });
    await expect.poll(() => parts.pool.load()).toEqual([{ buildId: "b1", wanted: 3, ready: 3 }]);
    const { asked, usedBytes } = parts.pool.account();
    expect(asked).toEqual([{ buildId: "b1", size: 5 }]);
    expect(usedBytes).toBeLessThanOrEqual(55_000_000);
  },
);

test("what an earlier agent process left in the pool stays until the orchestrator has said what it wants", async () => {
  const { engine, parts: earlier } = liveParts({ targets: target(2) });
  await expect.poll(() => earlier.pool.load()[0]?.ready).toBe(2);
  const parts = agentParts(engine);
  onTestFinished(() => parts.stop());
  const left = earlier.pool.containers();
  for (const container of left) parts.pool.adopt(container);
  const plans = vi.spyOn(engine, "freeMemory", "get");
  await expect.poll(() => plans.mock.calls.length, { timeout: 60_000 }).toBeGreaterThan(1);
  expect(parts.pool.ids()).toEqual(left.map(({ id }) => id));
  parts.pool.setTargets(target(1));
  await expect.poll(() => parts.pool.ids()).toHaveLength(1);
  expect(left.map(({ id }) => id)).toContain(parts.pool.ids()[0]);
});

test("a build whose entries turn out to take more than the pool may is not started again and again", async () => {
  const { engine, parts } = liveParts({ targets: target(2), poolBytes: 60_000_000 });
  engine.fail((step) => {
    if (step === "freeze") for (const container of engine.containers.values()) container.memoryBytes = 500_000_000;
  });
  await expect.poll(() => engine.steps.filter((step) => step === "create")).toHaveLength(1);
  const plans = vi.spyOn(engine, "freeMemory", "get");
  await expect.poll(() => plans.mock.calls.length, { timeout: 60_000 }).toBeGreaterThan(2);
  expect(engine.steps.filter((step) => step === "create")).toHaveLength(1);
  expect(parts.pool.load()).toEqual([{ buildId: "b1", wanted: 0, ready: 0 }]);
});

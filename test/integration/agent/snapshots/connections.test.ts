/** When a pause, a resume and a failed dump act on a sandbox's connections. */

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { again, machineForEach, snapshotRequest } from "../machine.ts";

const here = machineForEach();
const { expectRunning, failAt, running, takeOver } = here;

const openSlots = () => [...here.engine.firewall.values()].filter(({ open }) => open).length;

/** A paused sandbox, and the operations of its pause. */
async function paused() {
  const sandbox = await running();
  const before = here.engine.steps.length;
  const { snapshotId } = await here.parts.taker.pause(sandbox.executionId, snapshotRequest());
  return { sandbox, snapshotId, steps: here.engine.steps.slice(before) };
}

test("a pause ends what leaves its frozen sandbox once its memory is durable, while the peers can be told", async () => {
  const seen: number[] = [];
  here.engine.fail((step) => {
    if (step === "end connections") seen.push(openSlots());
  });
  const { steps } = await paused();
  expect(steps.indexOf("close connections")).toBeGreaterThan(steps.indexOf("dump"));
  expect(steps.indexOf("end connections")).toBeGreaterThan(steps.indexOf("durable"));
  expect(seen).toEqual([1]);
  await expect.poll(openSlots).toBe(0);
});

test("a pause that cannot end connections is a pause", async () => {
  failAt("end connections");
  const { sandbox, snapshotId } = await paused();
  expect((await here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId))).restored).toBe("frozen");
  expectRunning();
});

test("a thaw ends nothing again, unless another agent has paused the sandbox", async () => {
  for (const replaced of [false, true]) {
    const { sandbox, snapshotId } = await paused();
    if (replaced) await takeOver();
    const before = here.engine.steps.length;
    await here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId));
    const steps = here.engine.steps.slice(before);
    expect(steps.includes("end connections")).toBe(replaced);
    if (replaced) expect(steps.indexOf("end connections")).toBeLessThan(steps.indexOf("thaw"));
    await here.parts.sandboxes.stop(here.parts.stores.executions.all()[0]?.id ?? "");
  }
});

test("a restore begins in a slot that has the addresses of the dump, and holds nothing back afterwards", async () => {
  const { sandbox, snapshotId } = await paused();
  const [container] = here.engine.containers.values();
  const [address] = [...here.engine.firewall.values()].map((one) => one.address);
  here.engine.die(container?.id ?? "");
  await here.parts.stop();
  await takeOver();
  const before = here.engine.steps.length;
  await here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId));
  const steps = here.engine.steps.slice(before);
  expect(steps).toContain(`addresses ${address}`);
  expect(steps.indexOf("prepare connections")).toBeLessThan(steps.indexOf("start"));
  expect(steps.indexOf("release connections")).toBeGreaterThan(steps.indexOf("start"));
});

test("a failed dump is looked after before its sandbox goes on", async () => {
  const { executionId } = await running();
  const before = here.engine.steps.length;
  failAt("dump");
  await expect(here.parts.taker.checkpoint(executionId, snapshotRequest())).rejects.toThrow();
  const steps = here.engine.steps.slice(before);
  expect(steps.indexOf("mend connections")).toBeLessThan(steps.indexOf("thaw"));
  expect(steps).toContain("mend connections");
  expectRunning();
});

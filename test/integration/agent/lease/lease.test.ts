/** A node that no orchestrator answers: what stands still, what goes on, and what the next agent finds. The machine is in memory. */

import { expect, test } from "vitest";
import { endExpired } from "../../../../agent/snapshots/take/end-expired.ts";
import type { HeartbeatReply } from "../../../../shared/agent-api/routes.ts";
import { isError } from "../../../../shared/http/errors.ts";
import { createLog } from "../../../../shared/program/log.ts";
import type { FakeContainer } from "../../../support/fakes/fake-container.ts";
import { machineForEach, type Running, snapshotRequest } from "../machine.ts";

const log = createLog({ component: "test", level: "silent" });
const FOR_MS = 30_000;
const machine = machineForEach();
const clock = { at: 1_000_000 };
const sinceBoot = () => clock.at;

/** The next agent on the machine, up to where it would let requests in. */
async function takeOver(more: { freezes?: boolean } = {}): Promise<void> {
  await machine.takeOver({ sinceBoot, ...more });
  await machine.parts.lease.check();
}

async function two(): Promise<[Running, Running]> {
  await takeOver();
  return [await machine.running(), await machine.running()];
}

/** A report that an orchestrator answers after a while. */
async function report(
  reply: Partial<HeartbeatReply> & { readonly unlimited?: boolean } = {},
  { takesMs = 0 }: { readonly takesMs?: number } = {},
): Promise<void> {
  const { sandboxes, lease } = machine.parts;
  const sent = { at: clock.at, executions: sandboxes.running().map(({ executionId }) => executionId) };
  clock.at += takesMs;
  const { unlimited = false, stop = [], ...more } = reply;
  await Promise.all(stop.map((id) => sandboxes.stop(id)));
  const limited = unlimited ? {} : { lease: { forMs: FOR_MS, withoutRecord: [] } };
  await lease.answered(sent, { pools: [], stop, endAt: {}, deleteSnapshots: [], ...limited, ...more });
}

async function silentFor(ms: number): Promise<void> {
  clock.at += ms;
  await machine.parts.lease.check();
}

function containerOf({ body }: Running): FakeContainer | undefined {
  return [...machine.engine.containers.values()].find(({ name }) => name === `svc-${body.sandboxId}`);
}

const frozen = (...all: Running[]) => all.map((one) => containerOf(one)?.frozen);

test("a node that is cut off freezes its sandboxes at the limit, and thaws them at the next answer", async () => {
  const [one, other] = await two();
  await report();
  await silentFor(FOR_MS - 1);
  expect(frozen(one, other)).toEqual([false, false]);
  await silentFor(1);
  expect(frozen(one, other)).toEqual([true, true]);
  expect(machine.parts.lease.problem).toContain("2 sandboxes stand still");
  await report();
  expect(frozen(one, other)).toEqual([false, false]);
  expect(machine.parts.lease.problem).toBeUndefined();
});

test("the limit counts from the sending of the report, not from its answer", async () => {
  const [one] = await two();
  await report({}, { takesMs: 4_000 });
  await silentFor(FOR_MS - 4_000);
  expect(frozen(one)).toEqual([true]);
  await report({}, { takesMs: FOR_MS });
  expect(frozen(one)).toEqual([true]);
});

test("a sandbox that was replaced meanwhile ends without running again, and the other goes on", async () => {
  const [one, other] = await two();
  await report();
  await silentFor(FOR_MS);
  const before = machine.engine.steps.length;
  await report({ stop: [one.executionId] });
  expect(containerOf(one)?.running ?? false).toBe(false);
  expect(frozen(other)).toEqual([false]);
  expect(machine.engine.steps.slice(before).filter((step) => step === "thaw")).toHaveLength(1);
});

test("a sandbox without a record stays frozen until an orchestrator knows it", async () => {
  const [one, other] = await two();
  await report();
  await silentFor(FOR_MS);
  await report({ lease: { forMs: FOR_MS, withoutRecord: [one.executionId] } });
  expect(frozen(one, other)).toEqual([true, false]);
  await report();
  expect(frozen(one)).toEqual([false]);
});

test("an answer that limits nothing lets sandboxes run however long the control plane is away", async () => {
  const [one] = await two();
  await report({ unlimited: true });
  await silentFor(86_400_000);
  expect(frozen(one)).toEqual([false]);
});

test("a node that nothing may begin on refuses new and paused sandboxes, and asks for a report", async () => {
  await two();
  await report();
  clock.at += FOR_MS;
  await expect(machine.running()).rejects.toSatisfy((error) => isError(error, "unavailable"));
  expect(machine.parts.told).toContain("report wanted");
  await report();
  await machine.running();
});

test("a sandbox that is frozen for the disk too goes on when both reasons are over", async () => {
  await takeOver();
  const held = new Set<string>();
  await machine.takeOver({ sinceBoot, isHeld: (id) => held.has(id) });
  const one = await machine.running();
  await report();
  await silentFor(FOR_MS);
  held.add(one.executionId);
  await report();
  expect(frozen(one)).toEqual([true]);
  expect(machine.parts.lease.isFrozen(one.executionId)).toBe(false);
});

test("an agent that starts after the limit freezes what runs before anything reaches it, and one that starts before it does at the limit", async () => {
  const [one, other] = await two();
  await report();
  clock.at += FOR_MS - 1;
  await takeOver();
  expect(frozen(one, other)).toEqual([false, false]);
  clock.at += 1;
  await takeOver();
  expect(frozen(one, other)).toEqual([true, true]);
  await takeOver();
  expect(frozen(one, other)).toEqual([true, true]);
  await report({ stop: [one.executionId] });
  expect(frozen(other)).toEqual([false]);
});

test.each(["freeze", "close", "open"])(
  "an agent that is killed at %s leaves nothing running past the limit",
  async (step) => {
    const [one, other] = await two();
    await report();
    clock.at += FOR_MS;
    if (step !== "freeze") await machine.parts.lease.check();
    const vanished = machine.vanishAt(step);
    if (step === "freeze") void machine.parts.lease.check();
    // A pause of a frozen sandbox holds the network, lets the sandbox run, and fails here before it opens the network again.
    else {
      if (step === "open") machine.engine.fail((name) => (name === "open" ? new Promise(() => undefined) : fail(name)));
      void machine.parts.taker.pause(one.executionId, snapshotRequest()).catch(() => undefined);
    }
    if (step === "open") await expect.poll(() => machine.engine.steps.at(-1)).toBe("open");
    else await vanished;
    await takeOver();
    expect(frozen(one, other)).toEqual([true, true]);
    await report();
    expect(frozen(one, other)).toEqual([false, false]);
  },
);

function fail(name: string): void {
  if (name === "dump") throw new Error("injected");
}

test("an agent with the other setting lets run on what an earlier one froze", async () => {
  const [one] = await two();
  await report();
  await silentFor(FOR_MS);
  await takeOver({ freezes: false });
  machine.parts.lease.start();
  expect(frozen(one)).toEqual([false]);
  await report();
  await silentFor(10 * FOR_MS);
  expect(frozen(one)).toEqual([false]);
});

test("a timeout ends a frozen sandbox, by a kill and by a pause with its memory", async () => {
  await takeOver();
  const killed = await machine.running({ onTimeout: "kill" });
  const paused = await machine.running({ onTimeout: "pause" });
  await report();
  await silentFor(FOR_MS);
  const { sandboxes, taker, snapshots } = machine.parts;
  await endExpired(killed.executionId, { sandboxes, taker, log });
  await endExpired(paused.executionId, { sandboxes, taker, log });
  expect(sandboxes.running()).toEqual([]);
  expect(machine.parts.stores.executions.exits()).toMatchObject([
    { executionId: killed.executionId, reason: "expired" },
  ]);
  expect(snapshots.list()).toMatchObject([{ executionId: paused.executionId, kind: "pause", memory: true }]);
});

test("a pause of a frozen sandbox lets it run without a network only, and a pause that fails leaves it frozen", async () => {
  const [one] = await two();
  await report();
  await silentFor(FOR_MS);
  const opened = () => [...machine.engine.firewall.values()].filter(({ open }) => open).length;
  const seen: { readonly frozen: boolean | undefined; readonly opened: number }[] = [];
  machine.engine.fail((name) => {
    if (name === "suspend") seen.push({ frozen: containerOf(one)?.frozen, opened: opened() });
    if (name === "dump") throw new Error("injected");
  });
  await expect(machine.parts.taker.pause(one.executionId, snapshotRequest())).rejects.toThrow();
  // The other sandbox keeps its rules.
  expect(seen).toEqual([{ frozen: false, opened: 1 }]);
  expect(frozen(one)).toEqual([true]);
  expect(opened()).toBe(2);
  machine.engine.fail(() => undefined);
  await machine.parts.taker.pause(one.executionId, snapshotRequest());
  expect(machine.parts.sandboxes.running()).toHaveLength(1);
});

test("a copy of a frozen sandbox is refused at once, and says why", async () => {
  const [one] = await two();
  await report();
  await silentFor(FOR_MS);
  await expect(machine.parts.taker.checkpoint(one.executionId, snapshotRequest())).rejects.toThrow("held");
});

test("neither the lapse nor an answer touches a sandbox whose memory is being stored", async () => {
  const [one, other] = await two();
  await report();
  let goOn: () => void = () => undefined;
  let taking: Promise<unknown> = Promise.resolve();
  await new Promise<void>((resolve) => {
    machine.engine.fail((name) => {
      if (name !== "dump") return undefined;
      resolve();
      return new Promise<void>((end) => {
        goOn = end;
      });
    });
    taking = machine.parts.taker.checkpoint(one.executionId, snapshotRequest());
  });
  await silentFor(FOR_MS);
  expect(frozen(one, other)).toEqual([true, true]);
  await report();
  expect(frozen(one, other)).toEqual([true, false]);
  goOn();
  await taking;
  expect(frozen(one)).toEqual([false]);
});

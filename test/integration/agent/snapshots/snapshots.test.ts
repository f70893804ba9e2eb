/**
 * Pauses and checkpoints that fail or are cut off at every step: afterwards the sandbox is in the old state or in the new
 * one.
 */

import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { AppError } from "../../../../shared/http/errors.ts";
import { agentParts, startRequest } from "../../../support/fakes/agent-parts.ts";
import { again, machineForEach, type Running, snapshotRequest } from "../machine.ts";

const here = machineForEach();
const { expectRunning, failAt, running, takeOver, vanishAt } = here;

const PAUSE = ["suspend", "freeze", "draft", "dump", "close connections", "sync"];

describe("a pause", () => {
  test.each(PAUSE.filter((step) => step !== "suspend"))("that fails at %s leaves it running", async (step) => {
    const sandbox = await running();
    const { snapshotId } = snapshotRequest();
    failAt(step);
    await expect(here.parts.taker.pause(sandbox.executionId, { snapshotId, memory: true })).rejects.toThrow();
    here.engine.fail(() => undefined);
    expect(here.parts.sandboxes.route(sandbox.body.sandboxId)).toBeDefined();
    expectRunning();
    expect(here.parts.stores.snapshots.all()).toEqual([]);
    expect(await here.parts.taker.pause(sandbox.executionId, { snapshotId, memory: true })).toMatchObject({
      snapshotId,
    });
  });

  test.each([...PAUSE, "close", "durable", "end connections"])(
    "in which the agent is killed at %s is undone or done",
    async (step) => {
      const sandbox = await running();
      const { snapshotId } = snapshotRequest();
      const vanished = vanishAt(step);
      void here.parts.taker.pause(sandbox.executionId, { snapshotId, memory: true }).catch(() => undefined);
      await vanished;
      await takeOver();
      const runs = here.parts.sandboxes.get(sandbox.executionId) !== undefined;
      const stored = here.parts.snapshots.list().length === 1;
      expect(runs).toBe(!stored);
      expect(stored).toBe(step === "durable" || step === "end connections");
      if (runs) await expect.poll(expectRunning).toBeUndefined();
      // A repeated request ends the same way in both cases.
      expect(await here.parts.taker.pause(sandbox.executionId, { snapshotId, memory: true })).toMatchObject({
        snapshotId,
      });
      const resumed = await here.parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId));
      expect(resumed.restored).toBe("frozen");
      expectRunning();
    },
  );

  test("whose sandbox's network cannot be closed now is no failure of the memory, and may be asked for again", async () => {
    const { executionId } = await running();
    failAt("close");
    await expect(here.parts.taker.pause(executionId, snapshotRequest())).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("goes on running: try again") as unknown,
    });
    here.engine.fail(() => undefined);
    expectRunning();
    await here.parts.taker.pause(executionId, snapshotRequest());
  });

  test("says how long its parts took", async () => {
    const { executionId } = await running();
    const { times = {} } = await here.parts.taker.pause(executionId, snapshotRequest());
    const parts = ["admit", "connections", "dump", "envd", "finish", "freeze", "images", "pages", "paths"];
    expect(Object.keys(times).sort()).toEqual(parts);
  });

  test("over its project's quota is refused before anything of it is touched; without memory its disk is kept", async () => {
    await here.parts.stop();
    here.parts = agentParts(here.engine, { databasePath: here.databasePath, projectSnapshotQuotaMb: 5 });
    const { executionId, body } = await running({ projectId: "p1" });
    const before = here.engine.steps.length;
    for (const kind of ["pause", "checkpoint"] as const) {
      await expect(here.parts.taker[kind](executionId, snapshotRequest())).rejects.toMatchObject({
        code: "no_space",
        message: expect.stringMatching(/project's quota of 5 MiB .*SVC_PROJECT_SNAPSHOT_QUOTA_MB/) as unknown,
      });
    }
    expect(here.engine.steps.slice(before)).toEqual([]);
    expectRunning();
    const { snapshotId } = snapshotRequest();
    await here.parts.taker.pause(executionId, { snapshotId, memory: false });
    expect(here.parts.stores.snapshots.get(snapshotId)).toMatchObject({ state: "stored", projectId: "p1" });
    expect(here.parts.sandboxes.route(body.sandboxId)).toBeUndefined();
  });

  test("belongs to its project also when it is taken by another agent than the one that started the sandbox", async () => {
    const { executionId } = await running({ projectId: "p1" });
    await takeOver();
    const { snapshotId } = await here.parts.taker.pause(executionId, snapshotRequest());
    expect(here.parts.stores.snapshots.get(snapshotId)?.projectId).toBe("p1");
  });

  test("that would not fit above the disk's reserve is refused before anything of it is touched", async () => {
    await here.parts.stop();
    const storageRefusal = () => Promise.resolve(new AppError("no_space", "because of a test"));
    here.parts = agentParts(here.engine, { databasePath: here.databasePath, disk: { storageRefusal } });
    const { executionId } = await running();
    const before = here.engine.steps.length;
    await expect(here.parts.taker.pause(executionId, snapshotRequest())).rejects.toThrow("because of a test");
    expect(here.engine.steps.slice(before)).toEqual([]);
    expectRunning();
    expect(here.parts.stores.snapshots.all()).toEqual([]);
  });

  test("makes the sandbox unroutable and is not reported as an exit", async () => {
    const sandbox = await running();
    await here.parts.taker.pause(sandbox.executionId, snapshotRequest());
    expect(here.parts.sandboxes.route(sandbox.body.sandboxId)).toBeUndefined();
    expect(here.parts.stores.executions.exits()).toEqual([]);
    expect([...here.engine.firewall.values()].filter(({ open }) => open)).toEqual([]);
  });
});

describe("a checkpoint", () => {
  test.each(["freeze", "draft", "dump", "commit", "close connections", "sync"])(
    "that fails at %s leaves the original and nothing else",
    async (step) => {
      const sandbox = await running();
      failAt(step);
      await expect(here.parts.taker.checkpoint(sandbox.executionId, snapshotRequest())).rejects.toThrow();
      expectRunning();
      expect(here.parts.stores.snapshots.all()).toEqual([]);
    },
  );

  test.each(["suspend", "freeze", "draft", "dump", "commit", "close connections", "sync", "durable"])(
    "in which the agent is killed at %s leaves the original running",
    async (step) => {
      const sandbox = await running();
      const vanished = vanishAt(step);
      void here.parts.taker.checkpoint(sandbox.executionId, snapshotRequest()).catch(() => undefined);
      await vanished;
      await takeOver();
      expect(here.parts.sandboxes.get(sandbox.executionId)).toBeDefined();
      await expect.poll(expectRunning).toBeUndefined();
      expect(here.parts.snapshots.list()).toHaveLength(step === "durable" ? 1 : 0);
    },
  );

  test("says how long its parts took, and nothing of that when it was taken for an earlier request", async () => {
    const { executionId } = await running();
    const body = snapshotRequest();
    const { times = {}, ...taken } = await here.parts.taker.checkpoint(executionId, body);
    const parts = ["admit", "ahead", "disk", "dump", "envd", "finish", "freeze", "frozen", "images", "pages", "paths"];
    expect(Object.keys(times).sort()).toEqual(parts);
    expect(await here.parts.taker.checkpoint(executionId, body)).toEqual(taken);
  });

  test("at the same time as another checkpoint is refused, and two calls for the same checkpoint share it", async () => {
    const { executionId } = await running();
    const body = snapshotRequest();
    const first = here.parts.taker.checkpoint(executionId, body);
    const same = here.parts.taker.checkpoint(executionId, body);
    await expect(here.parts.taker.checkpoint(executionId, snapshotRequest())).rejects.toMatchObject({
      code: "conflict",
    });
    expect(await same).toEqual(await first);
  });

  test.each(["create", "annotations", "memory annotations", "start", "inspect", "ready", "verify", "init", "open"])(
    "a copy that fails at %s leaves nothing of it",
    async (step) => {
      const { executionId } = await running();
      const { snapshotId } = await here.parts.taker.checkpoint(executionId, snapshotRequest());
      failAt(step);
      const origin = { is: "snapshot" as const, snapshotId, memory: true };
      await expect(here.parts.sandboxes.start(randomUUID(), startRequest({ origin }))).rejects.toThrow();
      here.engine.fail(() => undefined);
      expect(here.engine.containers.size).toBe(1);
      expect(here.parts.stores.executions.all()).toHaveLength(1);
      const copy = await here.parts.sandboxes.start(randomUUID(), startRequest({ origin }));
      expect(copy.restored).toBe("memory");
      const made = [...here.engine.containers.values()].at(-1);
      // The copy has a control token of its own, and its container has the same token for a cold start.
      expect(made?.spec.env).toEqual([`SVC_ENVD_CONTROL=${made?.init?.controlToken}`]);
    },
  );
});

test("a pause that keeps nothing frozen leaves the disk alone while another node or the store reads it", async () => {
  const { executionId } = await running();
  const [container] = here.engine.containers.values();
  const { snapshotId } = snapshotRequest();
  let release: () => void = () => undefined;
  here.engine.fail(async (step) => {
    // The snapshot is stored already, and its container not dropped yet.
    if (step === "end connections") release = await here.parts.frozen.hold(snapshotId, container?.id ?? "");
  });
  await here.parts.taker.pause(executionId, { snapshotId, memory: true, frozen: false });
  here.engine.fail(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(container).toMatchObject({ running: true, frozen: true });
  release();
  await expect.poll(() => container?.running).toBe(false);
});

test.each(["pause", "checkpoint"] as const)("a sandbox that ends under a %s is no internal error", async (kind) => {
  const { executionId } = await running();
  const [id = ""] = here.engine.containers.keys();
  here.engine.fail((step) => {
    if (step !== "freeze") return;
    here.engine.die(id, { code: 0 });
    throw new Error("ENOENT: no such file or directory, open '/sys/fs/cgroup/…/cgroup.freeze'");
  });
  await expect(here.parts.taker[kind](executionId, snapshotRequest())).rejects.toMatchObject({
    code: "conflict",
    message: "the sandbox ended while its state was being stored",
  });
});

describe("a sandbox that storing its memory has ended", () => {
  const idOf = () => [...here.engine.containers.keys()][0] ?? "";
  const killedIn = (step: string) => {
    const id = idOf();
    here.engine.fail((name) => {
      if (name !== step) return;
      here.engine.die(id, { code: 139 });
      throw new Error("injected");
    });
    return id;
  };
  /** Expects a stored pause of the node's own, without memory, from which the sandbox starts again. */
  const expectDiskKept = async (sandbox: Running, id: string) => {
    await expect.poll(() => here.parts.snapshots.list()).toHaveLength(1);
    const [stored] = here.parts.snapshots.list();
    const { executionId, body } = sandbox;
    expect(stored).toMatchObject({ kind: "pause", memory: false, executionId, sandboxId: body.sandboxId });
    expect(here.parts.told.filter((one) => one.startsWith("exit"))).toEqual([]);
    expect(here.parts.sandboxes.running()).toEqual([]);
    const resumed = await here.parts.sandboxes.start(randomUUID(), again(sandbox, stored?.snapshotId ?? "", true));
    expect([resumed.restored, here.engine.containers.has(id)]).toEqual(["disk", true]);
  };

  test("in a pause has its disk kept", async () => {
    const sandbox = await running();
    const id = killedIn("dump");
    await expect(here.parts.taker.pause(sandbox.executionId, snapshotRequest())).rejects.toThrow();
    here.engine.fail(() => undefined);
    await expectDiskKept(sandbox, id);
  });

  test.each([0, 1])("in a checkpoint has its disk kept when Docker reports the end (later: %i)", async (later) => {
    const sandbox = await running();
    const id = idOf();
    here.engine.fail((name) => {
      if (name !== "dump") return;
      if (later === 0) {
        here.engine.die(id, { code: 139 });
        here.parts.sandboxes.died(id, { reason: "exited", exitCode: 139 });
      }
      throw new Error("injected");
    });
    await expect(here.parts.taker.checkpoint(sandbox.executionId, snapshotRequest())).rejects.toThrow();
    here.engine.fail(() => undefined);
    if (later === 1) {
      here.engine.die(id, { code: 139 });
      here.parts.sandboxes.died(id, { reason: "exited", exitCode: 139 });
    }
    await expectDiskKept(sandbox, id);
  });

  test("leaves no trace: after a successful checkpoint an end is an exit", async () => {
    const sandbox = await running();
    const { snapshotId } = await here.parts.taker.checkpoint(sandbox.executionId, snapshotRequest());
    here.parts.sandboxes.died(idOf(), { reason: "exited", exitCode: 1 });
    await expect.poll(() => here.parts.told.includes("exit exited")).toBe(true);
    expect(here.parts.snapshots.list().map((one) => one.snapshotId)).toEqual([snapshotId]);
  });
});

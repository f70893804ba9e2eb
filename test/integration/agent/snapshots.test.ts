/** Pause, resume and checkpoint, failing or cut off at every step: afterwards it is the old state or the new one. */

import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { recover } from "../../../agent/recovery/apply.ts";
import { openStores } from "../../../agent/store/stores.ts";
import type { StartBody } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { createLog } from "../../../shared/program/log.ts";
import { agentParts, type Parts, type PartsOptions, startBody } from "../../support/fakes/agent-parts.ts";
import { type FakeEngine, fakeEngine } from "../../support/fakes/fake-engine.ts";
import { testSeal } from "../../support/store/test-seal.ts";

const log = createLog({ component: "test", level: "silent" });

let directory: string;
let engine: FakeEngine;
let parts: Parts;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-snapshots-"));
  engine = fakeEngine();
  parts = agentParts(engine, { databasePath: join(directory, "agent.db") });
});
afterEach(() => rm(directory, { recursive: true, force: true }));

interface Running {
  readonly executionId: string;
  readonly body: StartBody;
}

async function running(more: Partial<StartBody> = {}): Promise<Running> {
  const executionId = randomUUID();
  const body = startBody(more);
  await parts.sandboxes.start(executionId, body);
  return { executionId, body };
}

const capture = (snapshotId = randomUUID()) => ({ snapshotId, memory: true });
const again = ({ body }: Running, snapshotId: string, memory = true): StartBody => ({
  ...body,
  origin: { is: "paused", snapshotId, memory },
});

/** The container is as a running one is: awake, on the network, with its watches. */
function expectRunning(): void {
  const [container] = engine.containers.values();
  expect(container).toMatchObject({ running: true, frozen: false, watches: true });
  expect([...engine.firewall.values()].filter(({ open }) => open)).toHaveLength(1);
}

function failAt(step: string): void {
  engine.fail((name) => {
    if (name === step) throw new Error("injected");
  });
}

function vanishAt(step: string): Promise<void> {
  return new Promise((resolve) => {
    engine.fail((name) => {
      if (name !== step) return undefined;
      resolve();
      return new Promise(() => undefined);
    });
  });
}

/** The next agent on the same machine. */
async function takeOver(more: PartsOptions = {}, fault: (step: string) => unknown = () => undefined): Promise<void> {
  engine.fail(fault);
  const databasePath = join(directory, "agent.db");
  const stores = openStores(databasePath, testSeal);
  const found = await recover({ ...engine.deps(), stores, now: Date.now, log });
  await found.cleared;
  stores.close();
  engine.fail(() => undefined);
  parts = agentParts(engine, { ...more, databasePath, before: found });
  await expect.poll(() => engine.slots.size).toBe(found.sandboxes.length + found.frozen.length);
}

const PAUSE = ["suspend", "freeze", "draft", "dump", "sync"];

describe("a pause", () => {
  test.each(PAUSE.filter((step) => step !== "suspend"))("that fails at %s leaves it running", async (step) => {
    const sandbox = await running();
    const { snapshotId } = capture();
    failAt(step);
    await expect(parts.captures.pause(sandbox.executionId, { snapshotId, memory: true })).rejects.toThrow();
    engine.fail(() => undefined);
    expect(parts.sandboxes.route(sandbox.body.sandboxId)).toBeDefined();
    expectRunning();
    expect(parts.stores.snapshots.all()).toEqual([]);
    expect(await parts.captures.pause(sandbox.executionId, { snapshotId, memory: true })).toMatchObject({ snapshotId });
  });

  test.each([...PAUSE, "close", "durable"])("in which the agent is killed at %s is undone or done", async (step) => {
    const sandbox = await running();
    const { snapshotId } = capture();
    const vanished = vanishAt(step);
    void parts.captures.pause(sandbox.executionId, { snapshotId, memory: true }).catch(() => undefined);
    await vanished;
    await takeOver();
    const runs = parts.sandboxes.get(sandbox.executionId) !== undefined;
    const stored = parts.snapshots.list().length === 1;
    expect(runs).toBe(!stored);
    expect(stored).toBe(step === "durable");
    if (runs) await expect.poll(expectRunning).toBeUndefined();
    // The same request again has the same end in both cases.
    expect(await parts.captures.pause(sandbox.executionId, { snapshotId, memory: true })).toMatchObject({ snapshotId });
    const resumed = await parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId));
    expect(resumed.restored).toBe("frozen");
    expectRunning();
  });

  test("over its project's quota is refused before anything of it is touched; without memory its disk is kept", async () => {
    await parts.stop();
    parts = agentParts(engine, { databasePath: join(directory, "agent.db"), projectSnapshotQuotaMb: 5 });
    const { executionId, body } = await running({ projectId: "p1" });
    const before = engine.steps.length;
    for (const kind of ["pause", "checkpoint"] as const) {
      await expect(parts.captures[kind](executionId, capture())).rejects.toMatchObject({
        code: "no_space",
        message: expect.stringMatching(/project's quota of 5 MiB .*SVC_PROJECT_SNAPSHOT_QUOTA_MB/) as unknown,
      });
    }
    expect(engine.steps.slice(before)).toEqual([]);
    expectRunning();
    const { snapshotId } = capture();
    await parts.captures.pause(executionId, { snapshotId, memory: false });
    expect(parts.stores.snapshots.get(snapshotId)).toMatchObject({ state: "stored", projectId: "p1" });
    expect(parts.sandboxes.route(body.sandboxId)).toBeUndefined();
  });

  test("is its project's also when another agent than the one that started it takes it", async () => {
    const { executionId } = await running({ projectId: "p1" });
    await takeOver();
    const { snapshotId } = await parts.captures.pause(executionId, capture());
    expect(parts.stores.snapshots.get(snapshotId)?.projectId).toBe("p1");
  });

  test("that would not fit above the disk's reserve is refused before anything of it is touched", async () => {
    await parts.stop();
    const storageRefusal = () => Promise.resolve(new AppError("no_space", "because of a test"));
    parts = agentParts(engine, { databasePath: join(directory, "agent.db"), disk: { storageRefusal } });
    const { executionId } = await running();
    const before = engine.steps.length;
    await expect(parts.captures.pause(executionId, capture())).rejects.toThrow("because of a test");
    expect(engine.steps.slice(before)).toEqual([]);
    expectRunning();
    expect(parts.stores.snapshots.all()).toEqual([]);
  });

  test("makes the sandbox unroutable and is not reported as an exit", async () => {
    const sandbox = await running();
    await parts.captures.pause(sandbox.executionId, capture());
    expect(parts.sandboxes.route(sandbox.body.sandboxId)).toBeUndefined();
    expect(parts.stores.executions.exits()).toEqual([]);
    expect([...engine.firewall.values()].filter(({ open }) => open)).toEqual([]);
  });
});

describe("a resume", () => {
  const pausedCold = async () => {
    const sandbox = await running();
    const { snapshotId } = await parts.captures.pause(sandbox.executionId, capture());
    const [container] = engine.containers.values();
    engine.die(container?.id ?? "");
    await parts.stop();
    await takeOver();
    return { sandbox, snapshotId };
  };
  const STEPS = ["mark", "mark memory", "start", "inspect", "ready", "verify", "init", "open"];

  test.each(STEPS)("from memory that fails at %s leaves it paused", async (step) => {
    const { sandbox, snapshotId } = await pausedCold();
    failAt(step);
    await expect(parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId))).rejects.toThrow();
    engine.fail(() => undefined);
    expect(parts.stores.executions.all()).toEqual([]);
    expect(parts.stores.snapshots.all()).toMatchObject([{ id: snapshotId, state: "stored" }]);
    expect(engine.containers.size).toBe(1);
    const resumed = await parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId));
    expect(resumed.restored).toBe("memory");
    expectRunning();
  });

  // Not at `verify`: that happens beside the others, and an agent cut off there is cut off at one of those.
  const CUTS = STEPS.filter((step) => step !== "verify");

  /** From here on the restored processes run: they are the sandbox's memory. */
  const RESTORED = ["ready", "init", "open"];

  const cutResume = async (step: string, sandbox: Running, snapshotId: string, memory = true) => {
    const vanished = vanishAt(step);
    void parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId, memory)).catch(() => undefined);
    await vanished;
  };
  const onlyPid = () => [...engine.containers.values()].map(({ pid }) => pid)[0];
  /** Unreachable, frozen where processes are left, and as reported to the orchestrator it is paused. */
  const expectPaused = (snapshotId: string) => {
    expect(parts.sandboxes.running()).toEqual([]);
    expect(parts.snapshots.list()).toMatchObject([{ snapshotId, memory: true }]);
    expect([...engine.firewall.values()].filter(({ open }) => open)).toEqual([]);
    expect([...engine.containers.values()].filter((one) => one.running && !one.frozen)).toEqual([]);
  };

  test.each(CUTS)("from memory in which the agent is killed at %s leaves it paused", async (step) => {
    const { sandbox, snapshotId } = await pausedCold();
    await cutResume(step, sandbox, snapshotId);
    const pid = onlyPid();
    await takeOver();
    expectPaused(snapshotId);
    const resumed = await parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId));
    expect(resumed.restored).toBe(RESTORED.includes(step) ? "frozen" : "memory");
    if (RESTORED.includes(step)) expect(onlyPid()).toBe(pid);
    expectRunning();
    expect(engine.containers.size).toBe(1);
  });

  test.each(["init", "open"])("of a frozen one in which the agent is killed at %s loses nothing", async (step) => {
    const sandbox = await running();
    const { snapshotId } = await parts.captures.pause(sandbox.executionId, capture());
    const pid = onlyPid();
    await cutResume(step, sandbox, snapshotId);
    await takeOver();
    expectPaused(snapshotId);
    expect((await parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId))).restored).toBe("frozen");
    expect(onlyPid()).toBe(pid);
    expectRunning();
  });

  test("that was cut keeps its processes over any number of agents, also where frozen ones are evicted at once", async () => {
    const { sandbox, snapshotId } = await pausedCold();
    await cutResume("open", sandbox, snapshotId);
    const pid = onlyPid();
    await takeOver();
    const other = await running();
    await parts.captures.pause(other.executionId, capture());
    await parts.stop();
    await takeOver({ frozenSeconds: 0 });
    // The other one's was to be evicted in the same round.
    await expect
      .poll(() => [...engine.containers.values()].map((one) => one.running), { timeout: 20_000 })
      .toEqual([true, false]);
    await cutResume("init", sandbox, snapshotId);
    await takeOver({ frozenSeconds: 0 });
    expect((await parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId))).restored).toBe("frozen");
    expect(onlyPid()).toBe(pid);
  });

  test("whose disk was booting when the agent was killed has the memory that was stored", async () => {
    const { sandbox, snapshotId } = await pausedCold();
    await cutResume("init", sandbox, snapshotId, false);
    await takeOver();
    expectPaused(snapshotId);
    expect((await parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId))).restored).toBe("memory");
  });

  test("from memory that is found damaged after the agent was killed is ended", async () => {
    const { sandbox, snapshotId } = await pausedCold();
    await cutResume("init", sandbox, snapshotId);
    await takeOver({}, (step) => {
      if (step === "verify") throw new Error("injected");
    });
    expectPaused(snapshotId);
    expect([...engine.containers.values()].map((one) => one.running)).toEqual([false]);
  });

  test("of a frozen container that does not answer restores the memory from the disk", async () => {
    const sandbox = await running();
    const { snapshotId } = await parts.captures.pause(sandbox.executionId, capture());
    let failed = false;
    engine.fail((name) => {
      if (name !== "init" || failed) return;
      failed = true;
      throw new Error("injected");
    });
    expect((await parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId))).restored).toBe("memory");
  });

  test("cannot be had twice, and a later pause replaces the memory", async () => {
    const sandbox = await running();
    const { snapshotId } = await parts.captures.pause(sandbox.executionId, capture());
    const executionId = randomUUID();
    await parts.sandboxes.start(executionId, again(sandbox, snapshotId));
    await expect(parts.sandboxes.start(randomUUID(), again(sandbox, snapshotId))).rejects.toMatchObject({
      code: "conflict",
    });
    const next = await parts.captures.pause(executionId, capture());
    await parts.snapshots.settled();
    expect(parts.snapshots.list().map((one) => one.snapshotId)).toEqual([next.snapshotId]);
    await parts.snapshots.delete(next.snapshotId);
    await parts.settled();
    expect(engine.containers.size).toBe(0);
  });
});

describe("a checkpoint", () => {
  test.each(["freeze", "draft", "dump", "commit", "sync"])(
    "that fails at %s leaves the original and nothing else",
    async (step) => {
      const sandbox = await running();
      failAt(step);
      await expect(parts.captures.checkpoint(sandbox.executionId, capture())).rejects.toThrow();
      expectRunning();
      expect(parts.stores.snapshots.all()).toEqual([]);
    },
  );

  test.each(["suspend", "freeze", "draft", "dump", "commit", "sync", "durable"])(
    "in which the agent is killed at %s leaves the original running",
    async (step) => {
      const sandbox = await running();
      const vanished = vanishAt(step);
      void parts.captures.checkpoint(sandbox.executionId, capture()).catch(() => undefined);
      await vanished;
      await takeOver();
      expect(parts.sandboxes.get(sandbox.executionId)).toBeDefined();
      await expect.poll(expectRunning).toBeUndefined();
      expect(parts.snapshots.list()).toHaveLength(step === "durable" ? 1 : 0);
    },
  );

  test("another one at the same time is refused, the same one shared", async () => {
    const { executionId } = await running();
    const body = capture();
    const first = parts.captures.checkpoint(executionId, body);
    const same = parts.captures.checkpoint(executionId, body);
    await expect(parts.captures.checkpoint(executionId, capture())).rejects.toMatchObject({ code: "conflict" });
    expect(await same).toEqual(await first);
  });

  test.each(["create", "mark", "mark memory", "start", "inspect", "ready", "verify", "init", "open"])(
    "a copy that fails at %s leaves nothing of it",
    async (step) => {
      const { executionId } = await running();
      const { snapshotId } = await parts.captures.checkpoint(executionId, capture());
      failAt(step);
      const origin = { is: "snapshot" as const, snapshotId, memory: true };
      await expect(parts.sandboxes.start(randomUUID(), startBody({ origin }))).rejects.toThrow();
      engine.fail(() => undefined);
      expect(engine.containers.size).toBe(1);
      expect(parts.stores.executions.all()).toHaveLength(1);
      const copy = await parts.sandboxes.start(randomUUID(), startBody({ origin }));
      expect(copy.restored).toBe("memory");
      const made = [...engine.containers.values()].at(-1);
      // It gets a control token of its own, which is also what its container has for a cold start.
      expect(made?.spec.env).toEqual([`SVC_ENVD_CONTROL=${made?.init?.controlToken}`]);
    },
  );
});

describe("restores that hang", () => {
  const stored = async () => {
    const { executionId } = await running();
    const { snapshotId } = await parts.captures.checkpoint(executionId, capture());
    return { is: "snapshot" as const, snapshotId, memory: true };
  };

  test("leave a turn to another project's, however many there are", async () => {
    await parts.stop();
    parts = agentParts(engine, { limits: { startLimitMs: 120_000 }, restoreLimitMs: 120_000 });
    const origin = await stored();
    const hung = { count: 0 };
    engine.fail((name) => {
      if (name !== "start") return undefined;
      hung.count += 1;
      return new Promise(() => undefined);
    });
    const hostile = Array.from({ length: 10 }, () => randomUUID());
    const copies = hostile.map((id) =>
      parts.sandboxes.start(id, startBody({ origin, projectId: "hostile" })).catch(() => undefined),
    );
    await expect.poll(() => hung.count, { timeout: 20_000 }).toBeGreaterThanOrEqual(3);
    engine.fail(() => undefined);
    const other = await parts.sandboxes.start(randomUUID(), startBody({ origin, projectId: "other" }));
    expect([other.restored, hung.count]).toEqual(["memory", 3]);
    await Promise.all(hostile.map((id) => parts.sandboxes.stop(id)));
    await Promise.all(copies);
  });

  test.each(["start", "ready"])("are given up at %s, with the reason, and leave nothing", async (step) => {
    await parts.stop();
    parts = agentParts(engine, { restoreLimitMs: 200 });
    const origin = await stored();
    const before = engine.containers.size;
    engine.fail((name) => (name === step ? new Promise(() => undefined) : undefined));
    await expect(parts.sandboxes.start(randomUUID(), startBody({ origin, projectId: "p" }))).rejects.toMatchObject({
      code: "sandbox_create_failed",
      message: "the sandbox's memory could not be restored: it did not answer in time",
    });
    engine.fail(() => undefined);
    expect(engine.containers.size).toBe(before);
  });
});

describe("a sandbox that storing its memory has ended", () => {
  const idOf = () => [...engine.containers.keys()][0] ?? "";
  const killedIn = (step: string) => {
    const id = idOf();
    engine.fail((name) => {
      if (name !== step) return;
      engine.die(id, { code: 139 });
      throw new Error("injected");
    });
    return id;
  };
  /** As a pause of its node's own, without memory, from which it starts again. */
  const expectDiskKept = async (sandbox: Running, id: string) => {
    await expect.poll(() => parts.snapshots.list(), { timeout: 20_000 }).toHaveLength(1);
    const [stored] = parts.snapshots.list();
    const { executionId, body } = sandbox;
    expect(stored).toMatchObject({ kind: "pause", memory: false, executionId, sandboxId: body.sandboxId });
    expect(parts.told.filter((one) => one.startsWith("exit"))).toEqual([]);
    expect(parts.sandboxes.running()).toEqual([]);
    const resumed = await parts.sandboxes.start(randomUUID(), again(sandbox, stored?.snapshotId ?? "", true));
    expect([resumed.restored, engine.containers.has(id)]).toEqual(["disk", true]);
  };

  test("in a pause has its disk kept", async () => {
    const sandbox = await running();
    const id = killedIn("dump");
    await expect(parts.captures.pause(sandbox.executionId, capture())).rejects.toThrow();
    engine.fail(() => undefined);
    await expectDiskKept(sandbox, id);
  });

  test.each([0, 1])(
    "in a checkpoint has its disk kept, when the engine tells of the end (%i: later)",
    async (later) => {
      const sandbox = await running();
      const id = idOf();
      engine.fail((name) => {
        if (name !== "dump") return;
        if (later === 0) {
          engine.die(id, { code: 139 });
          parts.sandboxes.died(id, { reason: "exited", exitCode: 139 });
        }
        throw new Error("injected");
      });
      await expect(parts.captures.checkpoint(sandbox.executionId, capture())).rejects.toThrow();
      engine.fail(() => undefined);
      if (later === 1) {
        engine.die(id, { code: 139 });
        parts.sandboxes.died(id, { reason: "exited", exitCode: 139 });
      }
      await expectDiskKept(sandbox, id);
    },
  );

  test("leaves no trace: after a successful capture an end is an exit", async () => {
    const sandbox = await running();
    const { snapshotId } = await parts.captures.checkpoint(sandbox.executionId, capture());
    parts.sandboxes.died(idOf(), { reason: "exited", exitCode: 1 });
    await expect.poll(() => parts.told.includes("exit exited"), { timeout: 20_000 }).toBe(true);
    expect(parts.snapshots.list().map((one) => one.snapshotId)).toEqual([snapshotId]);
  });
});

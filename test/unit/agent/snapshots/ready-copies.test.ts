import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { LiveContainer } from "../../../../agent/containers/live-container.ts";
import { createReadyCopies } from "../../../../agent/snapshots/restore/ready-copies.ts";
import type { CopyAsk } from "../../../../agent/snapshots/restore/rewind-copy.ts";
import type { Snapshot } from "../../../../agent/store/snapshots.ts";
import type { StartRequest } from "../../../../shared/agent-api/routes.ts";
import { createLog } from "../../../../shared/program/log.ts";

const MIB = 1024 * 1024;
const log = createLog({ component: "test", level: "silent" });
const never = new AbortController().signal;

function ask(sandboxId = "s1", over: { readonly snapshot?: object; readonly body?: object } = {}): CopyAsk {
  const snapshot = { id: "c1", memory: true, image: "i", memoryBytes: 100 * MIB, diskBytes: MIB, ...over.snapshot };
  const resources = { cpuCount: 1, memoryMB: 512, diskSizeMB: 1024 };
  const build = { templateId: "t", buildId: "b", image: "i" };
  return {
    body: { sandboxId, build, resources, ...over.body } as StartRequest,
    snapshot: snapshot as Snapshot,
  };
}

function container(id: string, alive = true): LiveContainer {
  return { id, cgroup: { alive: () => alive } } as unknown as LiveContainer;
}

interface Options {
  readonly make?: Parameters<typeof createReadyCopies>[0]["make"];
  readonly keepMs?: number;
}

function setUp({ make, keepMs = 60_000 }: Options = {}) {
  const made: string[] = [];
  const disposed: string[] = [];
  const node = { free: 10_000 * MIB, running: new Set(["s1", "s2"]), stored: new Set(["c1", "c2"]) };
  const copies = createReadyCopies({
    make:
      make ??
      ((wanted) => {
        made.push(`${wanted.body.sandboxId}-${made.length}`);
        return Promise.resolve(container(made.at(-1) ?? ""));
      }),
    dispose: ({ id }) => Promise.resolve(void disposed.push(id)),
    isRunning: (id) => node.running.has(id),
    isStored: (id) => node.stored.has(id),
    keepMs,
    freeMemory: () => node.free,
    reservedMemory: 500 * MIB,
    memoryBound: 250 * MIB,
    now: () => Date.now(),
    log,
  });
  return { copies, made, disposed, node };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());
const passes = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe("a copy for the next rewind", () => {
  test("is made a moment after it was asked for, and taken once", async () => {
    const { copies, made } = setUp();
    copies.prepare(ask());
    expect(made).toEqual([]);
    await passes(200);
    expect(copies.ids()).toEqual(["s1-0"]);
    expect((await copies.take(ask(), never))?.id).toBe("s1-0");
    expect(copies.ids()).toEqual([]);
    expect(await copies.take(ask(), never)).toBeUndefined();
    await copies.stop();
  });

  test("that is being made is waited for, and one that has not begun is not", async () => {
    const { copies, made, disposed } = setUp({
      make: async () => {
        await new Promise((resolve) => setTimeout(resolve, 500));
        return container("late");
      },
    });
    copies.prepare(ask());
    expect(await copies.take(ask(), never)).toBeUndefined();
    copies.prepare(ask());
    await passes(300);
    const taken = copies.take(ask(), never);
    await passes(500);
    expect((await taken)?.id).toBe("late");
    expect({ made, disposed }).toEqual({ made: [], disposed: [] });
    await copies.stop();
  });

  test("whose sandbox ends while it is being made is called off, and removed if it is made all the same", async () => {
    const made: { readonly id: string; readonly calledOff: boolean }[] = [];
    const { copies, disposed, node } = setUp({
      make: async ({ body: { sandboxId: id } }, { calledOff }) => {
        await new Promise((resolve) => setTimeout(resolve, 3_000));
        made.push({ id, calledOff: calledOff.aborted });
        return container(id);
      },
    });
    copies.prepare(ask("s1"));
    copies.prepare(ask("s2"));
    await passes(200);
    node.running.delete("s1");
    await passes(4_000);
    expect(disposed).toEqual(["s1"]);
    expect(copies.ids()).toEqual(["s2"]);
    expect(made.map(({ calledOff }) => calledOff)).toEqual([true, false]);
    await copies.stop();
  });

  test("that takes long to make is not waited for, nor once the rewind is called off: its making ends", async () => {
    const ended: unknown[] = [];
    const { copies, disposed } = setUp({
      make: (_, { calledOff }) =>
        new Promise((_resolve, reject) => {
          calledOff.addEventListener("abort", () => {
            ended.push(calledOff.reason);
            reject(calledOff.reason as Error);
          });
        }),
    });
    copies.prepare(ask());
    await passes(200);
    const late = copies.take(ask(), never);
    await passes(6_000);
    expect(await late).toBeUndefined();
    expect(ended).toHaveLength(1);
    copies.prepare(ask());
    await passes(200);
    const off = new AbortController();
    const taken = copies.take(ask(), off.signal).catch((error: unknown) => error);
    off.abort(new Error("called off"));
    expect(await taken).toMatchObject({ message: "called off" });
    expect(ended).toHaveLength(2);
    await copies.stop();
    expect(disposed).toEqual([]);
  });

  test.each([
    ["another sandbox", ask("s2")],
    ["another snapshot", ask("s1", { snapshot: { id: "c2" } })],
    ["another size", ask("s1", { body: { resources: { cpuCount: 2, memoryMB: 512, diskSizeMB: 1024 } } })],
    ["a sandbox with volumes", ask("s1", { body: { volumes: [{}] } })],
  ])("is not for %s", async (_, other) => {
    const { copies } = setUp();
    copies.prepare(ask());
    await passes(200);
    expect(await copies.take(other, never)).toBeUndefined();
    expect((await copies.take(ask(), never))?.id).toBe("s1-0");
    await copies.stop();
  });

  test.each([
    ["a snapshot without memory", { snapshot: { memory: false } }],
    ["a large disk", { snapshot: { diskBytes: 1024 * MIB } }],
    ["more memory than all copies may have", { snapshot: { memoryBytes: 300 * MIB } }],
    ["volumes", { body: { volumes: [{}] } }],
  ])("is not made for %s", async (_, over) => {
    const { copies, made } = setUp();
    copies.prepare(ask("s1", over));
    await passes(1_000);
    expect(made).toEqual([]);
    await copies.stop();
  });

  test("is not made where memory is short, where there is no time for it, or beyond the bound of all", async () => {
    const off = setUp({ keepMs: 0 });
    off.copies.prepare(ask());
    const { copies, made, node } = setUp();
    node.free = 550 * MIB;
    copies.prepare(ask());
    node.free = 10_000 * MIB;
    copies.prepare(ask("s1", { snapshot: { memoryBytes: 200 * MIB } }));
    copies.prepare(ask("s2"));
    await passes(200);
    expect(made).toEqual(["s1-0"]);
    expect(off.made).toEqual([]);
    await Promise.all([copies.stop(), off.copies.stop()]);
  });

  test("is removed when its time is over, its sandbox has ended, its snapshot is gone or memory is short", async () => {
    const { copies, disposed, node } = setUp({ keepMs: 10_000 });
    const round = async (change: () => void, ms: number) => {
      copies.prepare(ask());
      await passes(200);
      expect(copies.ids()).toHaveLength(1);
      change();
      await passes(ms);
      expect(copies.ids()).toEqual([]);
    };
    await round(() => undefined, 11_000);
    await round(() => node.running.delete("s1"), 1_500);
    node.running.add("s1");
    await round(() => node.stored.delete("c1"), 1_500);
    node.stored.add("c1");
    await round(() => (node.free = 0), 1_500);
    expect(disposed).toEqual(["s1-0", "s1-1", "s1-2", "s1-3"]);
    await copies.stop();
  });

  test("gives way to the next one of its sandbox, and to the stop of the agent", async () => {
    const { copies, disposed } = setUp();
    copies.prepare(ask());
    await passes(200);
    copies.prepare(ask("s1", { snapshot: { id: "c2" } }));
    await passes(200);
    expect(disposed).toEqual(["s1-0"]);
    expect(copies.ids()).toEqual(["s1-1"]);
    await copies.stop();
    expect(disposed).toEqual(["s1-0", "s1-1"]);
  });

  test("that has ended, could not be made, or whose rewind was called off, is none", async () => {
    const dead = setUp({ make: () => Promise.resolve(container("dead", false)) });
    dead.copies.prepare(ask());
    await passes(200);
    expect(await dead.copies.take(ask(), never)).toBeUndefined();
    expect(dead.disposed).toEqual(["dead"]);

    const failing = setUp({ make: () => Promise.reject(new Error("no room")) });
    failing.copies.prepare(ask());
    await passes(200);
    expect(await failing.copies.take(ask(), never)).toBeUndefined();

    const lost = setUp();
    lost.copies.prepare(ask());
    await passes(200);
    expect(lost.copies.lost("other")).toBe(false);
    expect(lost.copies.lost("s1-0")).toBe(true);
    expect(await lost.copies.take(ask(), never)).toBeUndefined();

    const off = setUp();
    off.copies.prepare(ask());
    await passes(200);
    await expect(off.copies.take(ask(), AbortSignal.abort(new Error("called off")))).rejects.toThrow("called off");
    await Promise.all([dead, failing, lost, off].map(({ copies }) => copies.stop()));
    expect(off.disposed).toEqual(["s1-0"]);
  });
});

/** What projects use: how the nodes' reports are counted, and when samples are taken. */

import { describe, expect, test } from "vitest";
import type { NewSamples, ProjectSample } from "../../../../orchestrator/store/usage/usage.ts";
import { createMeter, type Pending } from "../../../../orchestrator/usage/meter.ts";
import { createSampling } from "../../../../orchestrator/usage/sampling.ts";
import type { LiveExecution } from "../../../../shared/agent-api/routes.ts";

const T = 1_800_000_000;

function execution(id: string, use?: Partial<LiveExecution["use"]>): LiveExecution {
  const zero = { cpuMs: 0, sentBytes: 0, receivedBytes: 0, memoryBytes: 0, diskBytes: 0 };
  const live = { executionId: `e-${id}`, sandboxId: id, address: "10.0.0.2", startedAt: 0, endAt: 0 };
  return use === undefined ? live : { ...live, use: { ...zero, ...use } };
}

const owner = (id: string, projectId: string) => ({ id, executionId: `e-${id}`, projectId });

describe("the meter", () => {
  async function pending(meter: ReturnType<typeof createMeter>, ended: readonly string[] = []): Promise<Pending> {
    let taken: Pending | undefined;
    await meter.flush((all) => {
      taken = all;
      return Promise.resolve(ended);
    });
    if (taken === undefined) throw new Error("nothing was flushed");
    return taken;
  }

  test("adds up what counters have grown by, and what is in use, by project", async () => {
    const meter = createMeter(new Map([["e-a", { cpuMs: 100, sentBytes: 10, receivedBytes: 1 }]]), () => 0);
    const owners = [owner("a", "p1"), owner("b", "p1"), owner("c", "p2")];
    meter.heard(
      [
        execution("a", { cpuMs: 150, sentBytes: 10, receivedBytes: 3, memoryBytes: 5, diskBytes: 7 }),
        execution("b", { cpuMs: 20, memoryBytes: 1, diskBytes: 2 }),
        execution("c", { sentBytes: 9 }),
        execution("not measured"),
        execution("of nobody", { cpuMs: 1_000 }),
      ],
      owners,
    );
    const first = await pending(meter);
    expect(Object.fromEntries(first.used)).toEqual({
      p1: { cpuMs: 70, sentBytes: 0, receivedBytes: 2, memoryBytes: 6, diskBytes: 9 },
      p2: { cpuMs: 0, sentBytes: 9, receivedBytes: 0, memoryBytes: 0, diskBytes: 0 },
    });
    expect(first.counters.get("e-a")).toEqual({ cpuMs: 150, sentBytes: 10, receivedBytes: 3 });
    // Nothing new: what is in use stays, what was counted is not counted again.
    expect((await pending(meter)).used.get("p1")).toMatchObject({ cpuMs: 0, memoryBytes: 6 });
  });

  test("takes a counter that has become smaller for one that began again", async () => {
    const meter = createMeter(new Map(), () => 0);
    for (const cpuMs of [500, 40]) meter.heard([execution("a", { cpuMs })], [owner("a", "p")]);
    expect((await pending(meter)).used.get("p")?.cpuMs).toBe(540);
  });

  test("forgets nothing when the samples could not be stored", async () => {
    const meter = createMeter(new Map(), () => 0);
    meter.heard([execution("a", { cpuMs: 30 })], [owner("a", "p")]);
    await expect(meter.flush(() => Promise.reject(new Error("disk full")))).rejects.toThrow("disk full");
    meter.heard([execution("a", { cpuMs: 35 })], [owner("a", "p")]);
    const { used, counters } = await pending(meter);
    expect([used.get("p")?.cpuMs, counters.get("e-a")?.cpuMs]).toEqual([35, 35]);
  });

  test("stops counting an execution that no report mentions any more, and forgets it once it has ended", async () => {
    const clock = { now: 0 };
    const meter = createMeter(new Map(), () => clock.now);
    const report = () => meter.heard([execution("a", { cpuMs: 100, memoryBytes: 8 })], [owner("a", "p")]);
    report();
    expect((await pending(meter)).silent).toEqual([]);
    clock.now = 61_000;
    const last = await pending(meter);
    expect([last.silent, [...last.used]]).toEqual([["e-a"], []]);
    // Its node could not be reached: what was counted before is not counted again.
    expect((await pending(meter)).silent).toEqual(["e-a"]);
    report();
    expect((await pending(meter)).used.get("p")).toMatchObject({ cpuMs: 0, memoryBytes: 8 });
    clock.now = 122_000;
    expect((await pending(meter, ["e-a"])).silent).toEqual(["e-a"]);
    expect((await pending(meter)).silent).toEqual([]);
  });

  test("counts on when a report comes while the end of its execution is stored", async () => {
    const clock = { now: 0 };
    const meter = createMeter(new Map(), () => clock.now);
    const report = (cpuMs: number) => meter.heard([execution("a", { cpuMs })], [owner("a", "p")]);
    report(100);
    await pending(meter);
    clock.now = 61_000;
    await meter.flush(({ silent }) => {
      report(130);
      return Promise.resolve(silent);
    });
    expect((await pending(meter)).used.get("p")?.cpuMs).toBe(30);
    report(135);
    expect((await pending(meter)).used.get("p")?.cpuMs).toBe(5);
  });
});

describe("a round of sampling", () => {
  test("gives the steps that it missed what is in use, and begins again after a long pause", async () => {
    const clock = { now: T * 1000 };
    const added: Pick<NewSamples, "at" | "missed" | "began">[] = [];
    const observed: ProjectSample[] = [];
    const sample = createSampling({
      store: {
        add({ at, missed, began }) {
          added.push({ at: at - T, missed: missed.map((each) => each - T), began: began - T });
          return Promise.resolve({ samples: [], ended: [] });
        },
      },
      meter: createMeter(new Map(), () => clock.now),
      now: () => clock.now,
      observe: (samples) => observed.push(...samples),
    });
    for (const seconds of [0, 5.01, 10, 22, 200]) {
      clock.now = (T + seconds) * 1000;
      await sample();
    }
    expect(added).toEqual([
      { at: 0, missed: [], began: 0 },
      { at: 5, missed: [], began: 0 },
      { at: 10, missed: [], began: 0 },
      { at: 20, missed: [15], began: 0 },
      { at: 200, missed: [], began: 200 },
    ]);
  });
});

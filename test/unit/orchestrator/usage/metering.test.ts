/** What projects use: how the nodes' reports are counted, and when samples are taken. */

import { describe, expect, test } from "vitest";
import type { Heard } from "../../../../orchestrator/store/usage/counters.ts";
import type { NewSamples, ProjectSample } from "../../../../orchestrator/store/usage/usage.ts";
import { createMeter } from "../../../../orchestrator/usage/meter.ts";
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
  async function flushed(meter: ReturnType<typeof createMeter>): Promise<ReadonlyMap<string, Heard>> {
    let taken: ReadonlyMap<string, Heard> | undefined;
    await meter.flush((all) => {
      taken = all;
      return Promise.resolve();
    });
    if (taken === undefined) throw new Error("nothing was flushed");
    return taken;
  }

  test("passes on what the counters of each execution have grown by since it did so last, and what is in use", async () => {
    const clock = { now: 1 };
    const meter = createMeter(() => clock.now);
    const owners = [owner("a", "p1"), owner("c", "p2")];
    meter.heard(
      [
        execution("a", { cpuMs: 150, sentBytes: 10, receivedBytes: 3, memoryBytes: 5, diskBytes: 7 }),
        execution("c", { sentBytes: 9 }),
        execution("not measured"),
        execution("of nobody", { cpuMs: 1_000 }),
      ],
      owners,
    );
    const first = await flushed(meter);
    const counted = { cpuMs: 150, sentBytes: 10, receivedBytes: 3 };
    expect(Object.fromEntries(first)).toEqual({
      "e-a": { projectId: "p1", counted, grown: counted, memoryBytes: 5, diskBytes: 7, at: 1 },
      "e-c": {
        projectId: "p2",
        counted: { cpuMs: 0, sentBytes: 9, receivedBytes: 0 },
        grown: { cpuMs: 0, sentBytes: 9, receivedBytes: 0 },
        memoryBytes: 0,
        diskBytes: 0,
        at: 1,
      },
    });
    expect(await flushed(meter)).toEqual(new Map());
    for (const cpuMs of [160, 180]) {
      clock.now++;
      meter.heard([execution("a", { cpuMs, sentBytes: 10, receivedBytes: 3 })], owners);
    }
    expect((await flushed(meter)).get("e-a")).toMatchObject({
      counted: { cpuMs: 180 },
      grown: { cpuMs: 30, sentBytes: 0, receivedBytes: 0 },
      since: 1,
      at: 3,
    });
  });

  test("takes a counter that has become smaller for one that began again", async () => {
    const meter = createMeter(() => 0);
    for (const cpuMs of [500, 40]) meter.heard([execution("a", { cpuMs })], [owner("a", "p")]);
    expect((await flushed(meter)).get("e-a")?.grown.cpuMs).toBe(540);
  });

  test("forgets nothing when the samples could not be stored", async () => {
    const clock = { now: 1 };
    const meter = createMeter(() => clock.now);
    const report = (cpuMs: number) => meter.heard([execution("a", { cpuMs })], [owner("a", "p")]);
    report(10);
    await flushed(meter);
    clock.now = 2;
    report(30);
    await expect(
      meter.flush(() => {
        clock.now = 3;
        report(32);
        return Promise.reject(new Error("disk full"));
      }),
    ).rejects.toThrow("disk full");
    clock.now = 4;
    report(35);
    expect((await flushed(meter)).get("e-a")).toMatchObject({ counted: { cpuMs: 35 }, grown: { cpuMs: 25 }, since: 1 });
  });

  test("does not say what an execution has grown by that it has not heard of for a minute", async () => {
    const clock = { now: 0 };
    const meter = createMeter(() => clock.now);
    const report = (cpuMs: number) => meter.heard([execution("a", { cpuMs })], [owner("a", "p")]);
    report(100);
    await flushed(meter);
    clock.now = 61_000;
    await flushed(meter);
    report(130);
    expect((await flushed(meter)).get("e-a")).not.toHaveProperty("since");
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
          return Promise.resolve([]);
        },
      },
      meter: createMeter(() => clock.now),
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

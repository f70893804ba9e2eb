/** A start is recorded only while every limit of its project holds, also when ten come at once. */

import { expect, onTestFinished, test } from "vitest";
import { createRefusals } from "../../../../orchestrator/access/refusals.ts";
import type { StartLimits } from "../../../../orchestrator/store/projects/limits.ts";
import { createStore } from "../../../../orchestrator/store/store.ts";
import { newExecutionId, newSandboxId } from "../../../../shared/ids.ts";
import { openTestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const SIZE = { cpuCount: 2, memoryMB: 512, diskSizeMB: 1_024 };

async function openProject() {
  const opened = await openTestDatabase();
  onTestFinished(() => opened.close());
  const clock = { now: 1_000_000_000 };
  const store = createStore(opened.database, () => clock.now, testSeal);
  const project = await store.projects.create("team");
  const refusals = createRefusals({ store, now: () => clock.now, contact: "ops@example.com" });
  const record = () => {
    const id = newSandboxId();
    return newSandbox({
      ...SIZE,
      id,
      projectId: project.id,
      executionId: newExecutionId(),
      sealedEnvs: testSeal.close("{}", id),
    });
  };
  const burst = async (limits: StartLimits) => {
    const added = await Promise.all(Array.from({ length: 10 }, () => store.sandboxes.add(record(), limits)));
    return added.filter(Boolean).length;
  };
  const refusal = async (limits: StartLimits) => {
    const { code, message, retryAfterSeconds } = await refusals.start(project.id, SIZE, limits);
    return { code, message, retryAfterSeconds };
  };
  const run = async () => {
    const sandbox = record();
    expect(await store.sandboxes.add(sandbox, { sandboxes: 1_000 })).toBe(true);
    await store.move({ id: sandbox.id, to: "running", set: { address: "127.0.0.1" } }, { type: "created" });
    return sandbox.id;
  };
  const end = async (id: string) => {
    await store.move({ id, to: "killing", set: { end: { reason: "request" } } });
    await store.move({ id, to: "gone", set: { endedAt: clock.now } });
  };
  return { store, project, refusals, clock, burst, refusal, run, end };
}

test.each<[string, StartLimits, number, RegExp]>([
  [
    "sandboxes",
    { sandboxes: 3 },
    3,
    /number of concurrent sandboxes \(3\): the project has 3; .* ask ops@example\.com/,
  ],
  ["CPU", { sandboxes: 100, totalCPU: 9 }, 4, /maximum of 9 CPU cores .* uses 8 and this one needs 2 .* ask ops@/],
  [
    "memory",
    { sandboxes: 100, totalMemoryMB: 1_024 },
    2,
    /maximum of 1024 MiB of memory .* uses 1024 and .* needs 512/,
  ],
  ["disk", { sandboxes: 100, totalDiskMB: 6_000 }, 5, /maximum of 6000 MiB of disk .* uses 5120 and .* needs 1024/],
  [
    "starts a minute",
    { sandboxes: 100, startsPerMinute: 6 },
    6,
    /maximum of 6 sandbox starts a minute: .* had 6; .* ask ops@/,
  ],
])(
  "ten starts at once never exceed the limit of %s, and the refusal names it, its use and whom to ask",
  async (_name, limits, most, message) => {
    const { burst, refusal } = await openProject();
    expect(await burst(limits)).toBe(most);
    expect((await refusal(limits)).message).toMatch(message);
  },
);

test("starts of the last minute count while and after they run, and a sandbox that ended within it still does", async () => {
  const { burst, refusal, clock, run, end } = await openProject();
  const limits = { sandboxes: 100, startsPerMinute: 3 };
  await end(await run());
  clock.now += 20_000;
  await run();
  expect(await burst(limits)).toBe(1);
  expect(await refusal(limits)).toMatchObject({ code: "rate_limited", retryAfterSeconds: 40 });
  clock.now += 40_001;
  expect(await burst(limits)).toBe(1);
});

test("after the clock was set back by an hour the starts of a minute count for a minute", async () => {
  const { refusal, burst, clock, run } = await openProject();
  const limits = { sandboxes: 100, startsPerMinute: 3 };
  for (let started = 0; started < 3; started++) await run();
  clock.now -= 3_600_000;
  for (let started = 0; started < 2; started++) await run();
  expect(await burst(limits)).toBe(1);
  expect(await refusal(limits)).toMatchObject({ code: "rate_limited", retryAfterSeconds: 60 });
  clock.now += 60_001;
  expect(await burst(limits)).toBe(2);
});

test("a resume needs the room of its sandbox", async () => {
  const { store, run, burst } = await openProject();
  const id = await run();
  await store.move({ id, to: "pausing" });
  await store.move({ id, to: "paused", set: { snapshot: { id: "s1", memory: true } } });
  expect(await burst({ sandboxes: 1 })).toBe(1);
  const resume = (limit: StartLimits) =>
    store.move({ id, to: "starting", when: { from: ["paused"], limit }, set: { executionId: newExecutionId() } });
  expect(await resume({ sandboxes: 9, totalCPU: 3 })).toBeUndefined();
  expect(await resume({ sandboxes: 1 })).toBeUndefined();
  expect(await resume({ sandboxes: 2, totalCPU: 4 })).toMatchObject({ state: "starting" });
});

test("a project that was closed while a start was under way starts nothing", async () => {
  const { store, project, burst, refusal } = await openProject();
  const limits = { sandboxes: 10 };
  await store.projects.setStatus(project.id, "disabled", "unpaid");
  expect(await burst(limits)).toBe(0);
  expect(await refusal(limits)).toMatchObject({ code: "forbidden", message: "team is blocked: unpaid" });
  await store.projects.setStatus(project.id, "active", undefined);
  expect(await burst({ sandboxes: 1 })).toBe(1);
  await store.projectDeletions.begin(project);
  expect(await burst(limits)).toBe(0);
  expect(await refusal(limits)).toMatchObject({ code: "forbidden", message: "the project is being deleted" });
});

test("a refusal whose reason has passed asks the caller to try again", async () => {
  const { refusal } = await openProject();
  expect(await refusal({ sandboxes: 10 })).toMatchObject({ code: "rate_limited", retryAfterSeconds: 1 });
});

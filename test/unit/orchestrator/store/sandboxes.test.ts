/** A resume is a conditional move: the snapshot must be the one that its caller saw, and the project must have room. */

import { expect, onTestFinished, test } from "vitest";
import { createStore } from "../../../../orchestrator/store/store.ts";
import { newExecutionId, newSandboxId, newUuid } from "../../../../shared/ids.ts";
import { openTestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

async function openPaused(count: number) {
  const opened = await openTestDatabase();
  onTestFinished(() => opened.close());
  const store = createStore(opened.database, () => 1, testSeal);
  const project = await store.projects.create("team");
  const facts = { cpuCount: 1, memoryMB: 128, diskSizeMB: 0, envdVersion: "0" };
  const base = await store.templates.seed("base", { image: "base", ...facts });
  const paused: { readonly id: string; readonly snapshotId: string }[] = [];
  for (let made = 0; made < count; made++) {
    const id = newSandboxId();
    await store.sandboxes.add(
      newSandbox({
        id,
        projectId: project.id,
        executionId: newExecutionId(),
        templateId: base.templateId,
        buildId: base.id,
        ...facts,
        sealedEnvs: testSeal.close("{}", id),
      }),
      { sandboxes: count },
    );
    const snapshotId = newUuid();
    await store.move({ id, to: "running", set: { address: "127.0.0.1" } });
    await store.move({ id, to: "pausing" });
    await store.move({ id, to: "paused", set: { snapshot: { id: snapshotId, memory: true } } });
    paused.push({ id, snapshotId });
  }
  const resume = (id: string, snapshotId: string, limit: number) =>
    store.move({
      id,
      to: "starting",
      when: { from: ["paused"], snapshotId, limit: { sandboxes: limit } },
      set: { executionId: newExecutionId(), resumption: { memory: true, seconds: 60 }, deadlineAt: 100 },
    });
  return { store, paused, resume };
}

test("a burst of resumes does not exceed the project's limit of running sandboxes", async () => {
  const { store, paused, resume } = await openPaused(5);
  const moved = await Promise.all(paused.map(({ id, snapshotId }) => resume(id, snapshotId, 2)));
  expect(moved.filter((record) => record !== undefined)).toHaveLength(2);
  const counts = await store.sandboxes.countByState();
  expect(Object.fromEntries(counts)).toEqual({ starting: 2, paused: 3 });
});

test("a resume does not begin from a snapshot that another pause has replaced", async () => {
  const { store, paused, resume } = await openPaused(1);
  for (const { id, snapshotId } of paused) {
    expect(await resume(id, newUuid(), 10)).toBeUndefined();
    expect(await store.sandboxes.get(id)).toMatchObject({ state: "paused" });
    const starting = await resume(id, snapshotId, 10);
    expect(starting).toMatchObject({ state: "starting", snapshot: { id: snapshotId }, resumption: { seconds: 60 } });
    // Only one resume runs at a time: the second caller finds the sandbox starting.
    expect(await resume(id, snapshotId, 10)).toBeUndefined();
  }
});

test("the pages of a list have each sandbox of the wanted states once, in its order, whatever their states are", async () => {
  const opened = await openTestDatabase();
  onTestFinished(() => opened.close());
  const store = createStore(opened.database, () => 1, testSeal);
  const project = await store.projects.create("team");
  const base = await store.templates.seed("base", {
    image: "b",
    cpuCount: 1,
    memoryMB: 1,
    diskSizeMB: 0,
    envdVersion: "0",
  });
  const ends = ["running", "paused", "resuming", "starting", "gone", "paused", "running"] as const;
  const all: { readonly id: string; readonly is: (typeof ends)[number]; readonly startedAt: number }[] = [];
  for (let made = 0; made < 28; made++) {
    const is = ends[made % ends.length] ?? "gone";
    // Several of each state began at the same time.
    const [id, startedAt] = [newSandboxId(), 100 + Math.floor(made / 9)];
    const given = { id, projectId: project.id, executionId: newExecutionId(), startedAt };
    const row = { ...given, templateId: base.templateId, buildId: base.id, sealedEnvs: testSeal.close("{}", id) };
    await store.sandboxes.add(newSandbox(row), { sandboxes: 100 });
    if (is !== "starting") await store.move({ id, to: "running", set: { address: "127.0.0.1", startedAt } });
    if (is === "paused" || is === "resuming") {
      await store.move({ id, to: "pausing" });
      await store.move({ id, to: "paused", set: { snapshot: { id: newUuid(), memory: true } } });
    }
    if (is === "resuming") await store.move({ id, to: "starting", when: { from: ["paused"] } });
    if (is === "gone") await store.move({ id, to: "gone", set: { endedAt: 50, end: { reason: "request" } } });
    all.push({ id, is, startedAt });
  }

  async function listed(filter: Parameters<typeof store.sandboxes.list>[0], order: "asc" | "desc") {
    const ids: string[] = [];
    let after: { readonly id: string; readonly startedAt: number } | undefined;
    for (;;) {
      const page = await store.sandboxes.list(filter, { order, limit: 3, ...(after === undefined ? {} : { after }) });
      ids.push(...page.map(({ id }) => id));
      after = page.at(-1);
      if (after === undefined) return ids;
    }
  }
  const shown = (wanted: readonly (typeof ends)[number][], order: "asc" | "desc") =>
    all
      .filter(({ is }) => wanted.includes(is))
      .sort(
        (a, b) => (order === "asc" ? a.startedAt - b.startedAt : b.startedAt - a.startedAt) || (a.id < b.id ? -1 : 1),
      )
      .map(({ id }) => id);
  const projectId = project.id;
  for (const order of ["asc", "desc"] as const) {
    expect(await listed({ projectId, states: ["running"] }, order)).toEqual(shown(["running"], order));
    const both = { projectId, states: ["running", "pausing", "paused"], resuming: true } as const;
    expect(await listed(both, order)).toEqual(shown(["running", "paused", "resuming"], order));
    const kept = { projectId, states: ["paused", "gone"], endedSince: 50 } as const;
    expect(await listed(kept, order)).toEqual(shown(["paused", "gone"], order));
    expect(await listed({ ...kept, endedSince: 51 }, order)).toEqual(shown(["paused"], order));
    expect(await listed({ projectId, states: [] }, order)).toEqual([]);
  }
  const counted = await store.sandboxes.count({ projectId, states: ["running", "paused"], resuming: true });
  expect(Object.fromEntries(counted)).toEqual({ running: 8, paused: 8, starting: 4 });
});

test("the snapshots that the sandboxes of a node need are those of all that have not ended", async () => {
  const { store, paused } = await openPaused(3);
  const [first, second, third] = paused;
  await store.move({ id: first?.id ?? "", to: "gone", set: { endedAt: 5, end: { reason: "request" } } });
  await store.move({ id: second?.id ?? "", to: "starting", when: { from: ["paused"] } });
  expect(await store.pausedSandboxes.snapshotsOn("n1")).toEqual(new Set([second?.snapshotId, third?.snapshotId]));
  expect(await store.pausedSandboxes.snapshotsOn("n2")).toEqual(new Set());
});

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

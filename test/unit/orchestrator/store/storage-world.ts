/** A store with two projects and their sandboxes, for tests of what projects store. */

import { expect } from "vitest";
import type { StoredBytes } from "../../../../orchestrator/store/storage/stored-bytes.ts";
import { createStore, type Store } from "../../../../orchestrator/store/store.ts";
import { newExecutionId, newUuid } from "../../../../shared/ids.ts";
import { openTestDatabase } from "../../../support/store/databases.ts";
import { newSandbox } from "../../../support/store/sandbox-records.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const FACTS = { cpuCount: 1, memoryMB: 128, diskSizeMB: 0, envdVersion: "0" };
export const QUOTA = 100;

export async function openWorld(now: () => number = () => 1) {
  const opened = await openTestDatabase();
  const store = createStore(opened.database, now, testSeal);
  const project = await store.projects.create("team");
  const other = await store.projects.create("other");
  const base = await store.templates.seed("base", { image: "base", ...FACTS });

  /** Adds a running sandbox. */
  async function run(id: string, buildId = base.id): Promise<void> {
    const executionId = newExecutionId();
    const sealedEnvs = testSeal.close("{}", id);
    await store.sandboxes.add(
      newSandbox({ id, projectId: project.id, executionId, templateId: base.templateId, buildId, sealedEnvs }),
      { sandboxes: 100 },
    );
    await store.move({ id, to: "running", set: { address: "127.0.0.1" } });
  }

  async function pause(id: string, size: StoredBytes | undefined, at = 1): Promise<string> {
    const snapshot = { id: newUuid(), memory: true, size };
    await store.move({ id, to: "pausing", set: { pendingSnapshot: snapshot } });
    await store.move({ id, to: "paused", set: { snapshot, pendingSnapshot: null, endAt: at } });
    return snapshot.id;
  }

  /** Takes a snapshot of a running sandbox. */
  async function snapshot(id: string, size: StoredBytes | undefined, name?: string): Promise<string> {
    const alias = name === undefined ? undefined : { namespace: project.slug, alias: name };
    const template = await store.snapshots.templateFor(project.id, alias);
    const snapshotId = newUuid();
    await begin(store, { id, snapshotId, kind: "snapshot", templateId: template?.id ?? "" });
    const finished = await store.finishSnapshot(
      { id, to: "running", set: { pendingSnapshot: null } },
      { id: snapshotId, image: "copy", memory: true, ...(size === undefined ? {} : { size }) },
      "default",
    );
    expect(finished?.build.status).toBe("ready");
    return snapshotId;
  }

  return { opened, store, project, other, base, run, pause, snapshot };
}

interface Begin {
  readonly id: string;
  readonly snapshotId: string;
  readonly kind: "snapshot" | "fork";
  readonly templateId: string;
  readonly bytes?: number;
}

/** Moves a running sandbox to `snapshotting`, if its project has room for `bytes` in the quota. */
export async function begin(store: Store, { id, snapshotId, kind, templateId, bytes }: Begin) {
  const source = await store.sandboxes.get(id);
  if (source === undefined) throw new Error("no source");
  const room = bytes === undefined ? {} : { room: { bytes, quotaBytes: QUOTA } };
  return store.beginSnapshot(
    {
      id,
      to: "snapshotting",
      when: { from: ["running"], ...room },
      set: { pendingSnapshot: { id: snapshotId, memory: true, reservedBytes: bytes } },
    },
    {
      id: snapshotId,
      kind,
      templateId,
      source,
      image: "",
      memory: true,
      defaultUser: undefined,
      defaultWorkdir: undefined,
      sealedSettings: undefined,
    },
  );
}

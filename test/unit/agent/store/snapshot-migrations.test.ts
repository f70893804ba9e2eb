/** This agent reads rows of stored snapshots that an older agent wrote. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import type { Snapshot } from "../../../../agent/store/snapshots.ts";
import { openStores } from "../../../../agent/store/stores.ts";
import { createSeal } from "../../../../shared/program/seal.ts";
import { LATER } from "../../../support/store/agent-schema.ts";

const sealing = createSeal("a key of this test", "/etc/svc/seal.key");

const snapshot = (id: string): Snapshot => ({
  id,
  kind: "pause",
  state: "taking",
  sandboxId: "s",
  executionId: "e",
  projectId: "p",
  disk: {
    containerId: "c",
    controlToken: "token",
    build: { templateId: "base", buildId: "b1", image: "svc/base:1" },
    resources: { cpuCount: 1, memoryMB: 128, diskSizeMB: 512 },
    runtime: "/opt/svc/envd",
    upperDirectory: "/upper",
    createdAt: 1,
  },
  image: undefined,
  memory: true,
  memoryBytes: 0,
  diskBytes: 0,
  takenAt: 7,
  resuming: false,
});

test("an exit that the former version recorded is reported with the reason's new name, and a new one with its detail", async () => {
  const directory = await mkdtemp(join(tmpdir(), "svc-store-"));
  try {
    const path = join(directory, "agent.db");
    const first = openStores(path, sealing);
    first.executions.exit({ executionId: "e1", sandboxId: "s1", reason: "out_of_memory", exitCode: 137, at: 1 });
    first.close();
    const former = new Database(path);
    former.exec(
      `${LATER} alter table exits drop column detail; update exits set reason = 'oom'; pragma user_version = 12`,
    );
    former.close();
    const stores = openStores(path, sealing);
    stores.executions.exit({ executionId: "e2", sandboxId: "s2", reason: "exited", detail: "by\nitself", at: 2 });
    expect(stores.executions.exits()).toEqual([
      { executionId: "e1", sandboxId: "s1", reason: "out_of_memory", exitCode: 137, at: 1 },
      { executionId: "e2", sandboxId: "s2", reason: "exited", detail: "by itself", at: 2 },
    ]);
    stores.close();
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("an updated agent keeps the snapshots of its former version, stored and begun", async () => {
  const directory = await mkdtemp(join(tmpdir(), "svc-store-"));
  try {
    const path = join(directory, "agent.db");
    const first = openStores(path, sealing);
    first.snapshots.intend(snapshot("begun"));
    first.snapshots.intend(snapshot("stored"));
    first.snapshots.keep("stored", { memoryBytes: 1, diskBytes: 2, takenAt: 3 }, () => undefined);
    first.close();
    const former = new Database(path);
    former.exec(`${LATER} alter table exits drop column detail; alter table snapshots rename column taken_at to captured_at;
      update snapshots set state = 'capturing' where state = 'taking'; pragma user_version = 11`);
    former.close();
    const stores = openStores(path, sealing);
    expect(stores.snapshots.get("begun")).toEqual(snapshot("begun"));
    expect(stores.snapshots.get("stored")).toEqual({
      ...snapshot("stored"),
      state: "stored",
      memoryBytes: 1,
      diskBytes: 2,
      takenAt: 3,
    });
    stores.close();
  } finally {
    await rm(directory, { recursive: true });
  }
});

/** What the agent answers the orchestrator about stored files and images that none of its records references. */

import { expect, test } from "vitest";
import { listGarbage } from "../../../../agent/api/garbage.ts";
import type { Snapshot } from "../../../../agent/store/snapshots.ts";

test("memory, images of snapshots and builds, and cached layers beyond the budget are listed with known sizes", async () => {
  const spent = { id: "spent", state: "spent", memoryBytes: 7, disk: { containerId: "gone" } } as Snapshot;
  const stored = { id: "stored", state: "stored", memoryBytes: 9, disk: { containerId: "gone" } } as Snapshot;
  const unused = () => Promise.reject(new Error("a list must not remove anything"));
  const never = () => {
    throw new Error("a list must not remove anything");
  };
  const answer = await listGarbage({
    containers: {
      snapshotImages: () =>
        Promise.resolve([
          { id: "sha256:left", snapshotId: "left", createdAt: 0 },
          { id: "sha256:stored", snapshotId: "stored", createdAt: 0 },
        ]),
      removeImage: unused,
      buildImages: () => Promise.resolve(["svc/layer:old", "svc/from:n1-00000000-0000-0000-0000-000000000000"]),
      image: () => Promise.resolve({ labels: { "svc.node": "n1" } } as never),
      untag: unused,
    },
    stores: {
      snapshots: { all: () => [spent, stored], remove: never },
      containers: { all: () => [] },
      remains: { held: () => ({ containers: new Set(), snapshots: new Set(), images: new Set() }) },
      builds: { all: () => [] },
      layers: { all: () => [{ key: "k", image: "svc/layer:old", bytes: 50, usedAt: 1 }], remove: never },
    },
    files: {
      list: () => Promise.resolve({ stored: ["spent", "stored", "left"], unfinished: [] }),
      changedAt: () => Promise.resolve(0),
      remove: unused,
    },
    now: () => 3_600_000,
    nodeId: "n1",
    budgetBytes: 10,
  });
  expect(answer).toEqual({
    memory: [{ snapshotId: "spent", bytes: 7 }, { snapshotId: "left" }],
    images: [{ image: "sha256:left", snapshotId: "left" }],
    buildImages: ["svc/from:n1-00000000-0000-0000-0000-000000000000"],
    layers: [{ image: "svc/layer:old", bytes: 50 }],
  });
});

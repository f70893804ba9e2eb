/** What the next agent process does with a checkpoint whose files have their final name, and whose row says that it is being taken. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { snapshotFiles } from "../../../../agent/snapshots/store/files.ts";
import type { Manifest } from "../../../../agent/snapshots/store/manifest.ts";
import { interruptedSnapshots } from "../../../../agent/snapshots/take/interrupted.ts";
import { openStores } from "../../../../agent/store/stores.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { build, resources } from "../../../support/fakes/agent-parts.ts";
import { testSeal } from "../../../support/store/test-seal.ts";

const origins = { kernel: "6", architecture: "x86_64", cpuFlags: "sse2", criu: "4.2", runc: "1.1", envd: "0.6" };
const ID = "s1";
const IMAGE = `svc/snapshot:${ID}`;
const container = { containerId: "c1", build, resources, runtime: "/runtime/1", controlToken: "t" };
const facts = { sandboxId: "i1", executionId: "e1", kind: "checkpoint", memory: true } as const;
const sizes = { memoryBytes: 5, diskBytes: 0 };

/** An agent that was killed after the last file of a checkpoint, before its row says that it is stored. */
async function cut(durable: boolean) {
  const root = mkdtempSync(join(tmpdir(), "svc-interrupted-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const stores = openStores(":memory:", testSeal);
  onTestFinished(() => stores.close());
  const disk = { ...container, upperDirectory: undefined, createdAt: 1 };
  stores.snapshots.intend({
    ...facts,
    ...sizes,
    id: ID,
    state: "taking",
    projectId: "p1",
    disk,
    image: IMAGE,
    takenAt: 1,
  });
  const files = snapshotFiles(root);
  const draft = await files.draft(ID, durable);
  writeFileSync(join(draft.images, "pages-1.img"), "12345");
  await draft.finish(
    (list): Manifest => ({
      ...facts,
      ...sizes,
      ...container,
      format: 1,
      snapshotId: ID,
      origins,
      createdAt: 1,
      files: [...list],
    }),
  );
  return { root, stores, files };
}

async function nextAgent({ stores, files }: Awaited<ReturnType<typeof cut>>) {
  const removed: string[] = [];
  const goOn = await interruptedSnapshots({
    docker: {
      containers: {
        thawDisk: () => Promise.resolve(),
        inspect: () => Promise.resolve(undefined),
        removeImage: (image: string) => Promise.resolve(removed.push(image) > 0),
      },
    } as never,
    memory: { files, criu: { settled: () => Promise.resolve() } } as never,
    stores,
    now: () => 1,
    log: createLog({ component: "test", level: "silent" }),
  });
  return { goOn, removed };
}

test.each([true, false])("it is kept on a machine that has not restarted (it lasts: %s)", async (durable) => {
  const before = await cut(durable);
  expect(await nextAgent(before)).toEqual({ goOn: ["c1"], removed: [] });
  expect(before.stores.snapshots.get(ID)?.state).toBe("stored");
});

test("one that was to live for one call is removed after a restart of the machine, because nothing of it was flushed", async () => {
  const before = await cut(false);
  const path = join(before.root, ID, "manifest.json");
  const manifest = JSON.parse(readFileSync(path, "utf8")) as Manifest;
  writeFileSync(path, JSON.stringify({ ...manifest, boot: "of an earlier start of the machine" }));
  expect(await nextAgent(before)).toEqual({ goOn: ["c1"], removed: [IMAGE] });
  expect([before.stores.snapshots.get(ID), existsSync(join(before.root, ID))]).toEqual([undefined, false]);
});

/** Quotas of stored snapshots: what counts, what a refusal says, and how much several concurrent pauses may reserve. */

import { expect, test } from "vitest";
import type { Disks } from "../../../../agent/node-disk/reserve.ts";
import { tooLarge } from "../../../../agent/node-disk/space.ts";
import type { Sandbox } from "../../../../agent/sandboxes/sandbox.ts";
import { quotaRefusal, storedBy } from "../../../../agent/snapshots/store/quota.ts";
import { type AdmissionDeps, createAdmission } from "../../../../agent/snapshots/take/admission.ts";
import type { Snapshot } from "../../../../agent/store/snapshots.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { roomyDisk } from "../../../support/fakes/fake-machine.ts";

const MIB = 1024 ** 2;
const disk = (totalMb: number, device = 1, freeMb = totalMb) => ({
  device,
  freeBytes: freeMb * MIB,
  totalBytes: totalMb * MIB,
  freeInodes: 1_000_000,
  totalInodes: 1_000_000,
});
const one: Disks = { snapshots: disk(1_000), sandboxes: disk(1_000) };
const amount = (memoryMb: number, diskMb = 0) => ({ memory: memoryMb * MIB, disk: diskMb * MIB });
const none = { snapshotQuotaMb: 0, projectSnapshotQuotaMb: 0 };

const asked = { expected: amount(100), stored: amount(0), ofProject: amount(0), settings: none, disks: one };

test("without a setting a node stores as much as half of its disk, memory and disks together", () => {
  const settings = { projectSnapshotQuotaMb: 0 };
  expect(quotaRefusal({ ...asked, settings, stored: amount(300, 100) })).toBeUndefined();
  const refused = quotaRefusal({ ...asked, settings, stored: amount(301, 100) });
  expect(refused).toMatchObject({ code: "no_space" });
  expect(refused?.message).toMatch(
    /quota of 500 MiB .*\(SVC_SNAPSHOT_QUOTA_MB\).* take 401 MiB there, and this one would add about 100 MiB; delete/,
  );
});

test("memory images on a disk of their own may use half of that disk", () => {
  const disks = { snapshots: disk(1_000), sandboxes: disk(10_000, 2) };
  const settings = { projectSnapshotQuotaMb: 0 };
  expect(quotaRefusal({ ...asked, settings, disks, stored: amount(400, 4_000) })).toBeUndefined();
  expect(quotaRefusal({ ...asked, settings, disks, stored: amount(401, 0) })?.message).toContain("500 MiB");
  expect(quotaRefusal({ ...asked, settings, disks, stored: amount(0, 5_001) })?.message).toContain("5000 MiB");
});

test("a snapshot over its project's own quota is refused with the quota's setting in the reason, and 0 turns a quota off", () => {
  const settings = { snapshotQuotaMb: 0, projectSnapshotQuotaMb: 200 };
  expect(quotaRefusal({ ...asked, settings, stored: amount(5_000), ofProject: amount(50, 50) })).toBeUndefined();
  expect(quotaRefusal({ ...asked, settings, ofProject: amount(50, 51) })?.message).toMatch(
    /project's quota of 200 MiB .*\(SVC_PROJECT_SNAPSHOT_QUOTA_MB\).*101 MiB.*delete snapshots or paused sandboxes of the project/,
  );
  expect(quotaRefusal({ ...asked, settings, stored: amount(5_000), ofProject: undefined })).toBeUndefined();
  expect(quotaRefusal({ ...asked, stored: amount(5_000), ofProject: amount(5_000) })).toBeUndefined();
});

test("the disk of a sandbox that runs again is not stored, its memory image is; what is being written counts once", () => {
  const of = (state: Snapshot["state"]) => ({ state, memoryBytes: 10, diskBytes: 7 });
  expect(storedBy([of("stored"), of("spent"), of("taking")])).toEqual({ memory: 20, disk: 7 });
});

test("a snapshot must leave the reserve free; without a reserve the disk itself is the limit", () => {
  const reserve = { bytes: 100 * MIB, inodes: 0 };
  expect(tooLarge(disk(1_000, 1, 300), reserve, 200 * MIB)).toBeUndefined();
  const refused = tooLarge(disk(1_000, 1, 300), reserve, 201 * MIB);
  expect(refused).toMatchObject({ code: "no_space" });
  expect(refused?.message).toMatch(/about 201 MiB.*300 MiB free and keeps 100 MiB in reserve \(SVC_DISK_RESERVE_MB\)/);
  expect(tooLarge(disk(1_000, 1, 300), { bytes: 0, inodes: 0 }, 2 ** 50)).toBeUndefined();
});

const cgroup = { usage: () => ({ cpuUs: 0, memory: 60 * MIB, cache: 900 * MIB, shared: 40 * MIB }) };
const sandbox = (id: string, projectId = "p1") =>
  ({ executionId: id, projectId, container: { id: `c${id}`, upperDirectory: `/upper/${id}`, cgroup } }) as Sandbox;
const stored = (projectId: string, memoryMb: number, more: Partial<Snapshot> = {}) =>
  ({
    projectId,
    state: "stored",
    memoryBytes: memoryMb * MIB,
    diskBytes: 0,
    disk: { containerId: "other" },
    ...more,
  }) as Snapshot;
const withMemory = { snapshotId: "s", memory: true };

function admission(more: Partial<AdmissionDeps> = {}, snapshots: Snapshot[] = []) {
  return createAdmission({
    settings: { snapshotQuotaMb: 0, projectSnapshotQuotaMb: 250 },
    snapshots: { all: () => snapshots },
    disk: roomyDisk,
    diskBytes: () => 0,
    diskUsage: () => Promise.resolve(0),
    ...more,
  });
}

test("memory that processes share is expected to be written, file cache is not", async () => {
  const needed: unknown[] = [];
  const storageRefusal: AdmissionDeps["disk"]["storageRefusal"] = (bytes) => Promise.resolve(void needed.push(bytes));
  const { admit } = admission({ disk: { ...roomyDisk, storageRefusal }, diskUsage: () => Promise.resolve(7) });
  (await admit(sandbox("1"), withMemory, "pause"))();
  (await admit(sandbox("1"), withMemory, "checkpoint"))();
  // A pause leaves the sandbox's disk in its place, a checkpoint copies it.
  expect(needed).toEqual([
    { snapshots: 100 * MIB, sandboxes: 0 },
    { snapshots: 100 * MIB, sandboxes: 7 },
  ]);
});

test("a disk that was never measured is measured before it is copied, and recorded so", async () => {
  const one = admission({ diskUsage: (directory) => Promise.resolve(directory === "/upper/1" ? 50 * MIB : 0) });
  const done = await one.admit(sandbox("1"), withMemory, "checkpoint");
  expect(one.diskBytes("1")).toBe(50 * MIB);
  done();
  await expect(
    admission({ diskUsage: () => Promise.resolve(151 * MIB) }).admit(sandbox("1"), withMemory, "checkpoint"),
  ).rejects.toMatchObject({ code: "no_space" });
});

test("snapshots under way count as well, and their room is free again when they are over", async () => {
  const { admit } = admission();
  const first = await admit(sandbox("1"), withMemory, "pause");
  await admit(sandbox("2"), withMemory, "pause");
  await expect(admit(sandbox("3"), withMemory, "pause")).rejects.toMatchObject({ code: "no_space" });
  (await admit(sandbox("3", "p2"), withMemory, "pause"))();
  first();
  first();
  (await admit(sandbox("3"), withMemory, "pause"))();
});

test("other projects' snapshots do not count, nor does the image that this pause takes the place of", async () => {
  const former = stored("p1", 200, { state: "spent", disk: { containerId: "c1" } as Snapshot["disk"] });
  const { admit } = admission({}, [stored("p2", 5_000), former]);
  (await admit(sandbox("1"), withMemory, "pause"))();
  await expect(admit(sandbox("2"), withMemory, "pause")).rejects.toMatchObject({
    code: "no_space",
    message: expect.stringContaining("200 MiB") as unknown,
  });
});

test("a pause without memory is admitted with any amount stored, a copy of the disk alone is not", async () => {
  const short = new AppError("no_space", "short");
  const disks = { ...roomyDisk, snapshotRefusal: () => short };
  const { admit } = admission({ disk: disks }, [stored("p1", 5_000)]);
  const withoutMemory = { snapshotId: "s", memory: false };
  (await admit(sandbox("1"), withoutMemory, "pause"))();
  await expect(admit(sandbox("1"), withoutMemory, "checkpoint")).rejects.toBe(short);
  await expect(admit(sandbox("1"), withMemory, "pause")).rejects.toBe(short);
  await expect(admission({}, [stored("p1", 5_000)]).admit(sandbox("1"), withoutMemory, "checkpoint")).rejects.toThrow(
    /quota of 250 MiB/,
  );
});

test("the node's metrics show the stored bytes and the quota", () => {
  const space = { space: disk(1_000), reserve: { bytes: 0, inodes: 0 }, level: { is: "enough" as const } };
  const seen = () => ({ snapshots: space, sandboxes: space });
  const snapshots = [stored("p1", 100), stored("p2", 50)];
  const used = (settings: AdmissionDeps["settings"]) =>
    admission({ settings, disk: { ...roomyDisk, seen } }, snapshots).used();
  expect(used({ projectSnapshotQuotaMb: 1 })).toEqual({ storedBytes: 150 * MIB, quotaBytes: 500 * MIB });
  expect(used(none)).toEqual({ storedBytes: 150 * MIB, quotaBytes: 0 });
});

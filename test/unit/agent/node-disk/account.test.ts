/** The node's account of its disk: what is promised, used, free and reserved. */

import { expect, test } from "vitest";
import { createDiskAccount, type PromisedDisk } from "../../../../agent/node-disk/account.ts";
import { levelOf, type Space } from "../../../../agent/node-disk/space.ts";

const GIB = 1024 ** 3;
const space: Space = { device: 1, freeBytes: 40 * GIB, totalBytes: 100 * GIB, freeInodes: 500, totalInodes: 10_000 };
const reserve = { bytes: 10 * GIB, inodes: 200 };
const disk = (containerId: string, diskSizeMB: number, usedBytes: number): PromisedDisk => ({
  containerId,
  resources: { diskSizeMB },
  usedBytes,
});

const account = (of: Space, disks: readonly PromisedDisk[] = []) => {
  const watched = { space: of, reserve, level: levelOf(of, reserve) };
  return createDiskAccount(
    () => ({ snapshots: watched, sandboxes: watched }),
    () => disks,
  );
};

test("the account has promised and used bytes of all disks, and counts a sandbox once that is listed as running and as paused", () => {
  const one = account(space, [
    disk("a", 1_024, GIB),
    disk("b", 2_048, 5),
    disk("a", 1_024, GIB),
    disk("no limit", 0, 7),
  ]);
  expect(one.load()).toEqual({
    promisedBytes: 3 * GIB,
    usedBytes: GIB + 12,
    freeBytes: 40 * GIB,
    reserveBytes: 10 * GIB,
    short: false,
  });
});

test("a disk below its reserve of bytes or of inodes is reported as short", () => {
  expect(account({ ...space, freeBytes: 9 * GIB }).load()).toMatchObject({ short: true });
  expect(account({ ...space, freeInodes: 100 }).load()).toMatchObject({ short: true, freeBytes: 40 * GIB });
});

test("there is no account before the disk was measured", () => {
  expect(
    createDiskAccount(
      () => undefined,
      () => [],
    ).load(),
  ).toBeUndefined();
});

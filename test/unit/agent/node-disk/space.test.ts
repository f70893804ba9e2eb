import { expect, test } from "vitest";
import { levelOf, mayRelease, readSpace, reserveOf, type Space } from "../../../../agent/node-disk/space.ts";

const MIB = 1024 ** 2;
const disk = (totalMb: number): Space => ({
  device: 1,
  freeBytes: totalMb * MIB,
  totalBytes: totalMb * MIB,
  freeInodes: 1_000_000,
  totalInodes: 1_000_000,
});

test("without a setting the reserve is a tenth of the disk, however large the disk is", () => {
  expect(reserveOf(disk(250_000), undefined)).toEqual({ bytes: 25_000 * MIB, inodes: 20_000 });
  expect(reserveOf(disk(25), undefined).bytes).toBe(2.5 * MIB);
  expect(reserveOf(disk(24), 1)).toEqual({ bytes: MIB, inodes: 20_000 });
});

test("a reserve of 0 turns the reserve off", () => {
  const reserve = reserveOf(disk(10), 0);
  expect(levelOf({ ...disk(10), freeBytes: 0, freeInodes: 0 }, reserve)).toEqual({ is: "enough" });
});

test("a file system that makes inodes as they are needed is never short of them", () => {
  const endless = { ...disk(250_000), freeInodes: 0, totalInodes: 0 };
  expect(levelOf(endless, reserveOf(endless, undefined))).toEqual({ is: "enough" });
});

test("held sandboxes are released only when more than the reserve is free", () => {
  const reserve = { bytes: 1000, inodes: 0 };
  expect(levelOf({ ...disk(1), freeBytes: 1000 }, reserve)).toEqual({ is: "near" });
  expect(mayRelease({ ...disk(1), freeBytes: 1000 }, reserve)).toBe(false);
  expect(mayRelease({ ...disk(1), freeBytes: 1100 }, reserve)).toBe(true);
});

test("the free space of a real file system is read", async () => {
  const { freeBytes, totalBytes } = await readSpace("/");
  expect(freeBytes).toBeGreaterThan(0);
  expect(totalBytes).toBeGreaterThan(freeBytes);
});

/** What a time has cost a project, as sums of its samples. */

import { expect, test } from "vitest";
import { totalsOf } from "../../../../console/src/project/totals.ts";

const GIB = 2 ** 30;
const sample = (timestampUnix: number, more: object = {}) => ({
  timestamp: new Date(timestampUnix * 1000).toISOString(),
  timestampUnix,
  concurrentSandboxes: 0,
  sandboxStartRate: 0,
  cpuUsed: 0,
  memUsed: 0,
  diskUsed: 0,
  bytesSent: 0,
  bytesReceived: 0,
  ...more,
});

test("samples are summed by their length, and a gap of the platform adds nothing", () => {
  const busy = { sandboxStartRate: 0.01, cpuUsed: 3, memUsed: 2 * GIB, bytesSent: 1024, bytesReceived: 512 };
  // Of five minutes each; the third one comes an hour later.
  const samples = [sample(300, busy), sample(600, busy), sample(4_200, busy)];
  expect(totalsOf(samples)).toBe(
    "9 starts, 0.75 processor hours, at most 0.50 GiB hours of memory, 3.0 KiB sent, 1.5 KiB received",
  );
});

test("starts are counted one by one, although rates are rounded to thousandths", () => {
  // One start in each quarter of an hour is 0.00111 a second.
  const samples = Array.from({ length: 96 }, (_none, index) => sample(900 * index, { sandboxStartRate: 0.001 }));
  expect(totalsOf(samples)).toMatch(/^96 starts, /);
});

test("a gap between the only two samples is not their length", () => {
  const samples = [sample(900, { cpuUsed: 2 }), sample(90_000, { cpuUsed: 2 })];
  expect(totalsOf(samples)).toMatch(/, 1\.00 processor hours, /);
});

test("a time in which nothing ran costs nothing", () => {
  expect(totalsOf([sample(300), sample(600)])).toBe(
    "0 starts, 0.00 processor hours, at most 0.00 GiB hours of memory, 0 B sent, 0 B received",
  );
});

test.each([
  ["no sample", []],
  ["one sample, whose length is not known", [sample(300)]],
])("%s gives no sums", (_what, samples) => {
  expect(totalsOf(samples)).toBeUndefined();
});

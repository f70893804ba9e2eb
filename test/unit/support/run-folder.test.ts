/** The folder of a run: made once for all of its projects, and removed with what workers left in it, unless something is mounted there. */

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mountedBelow, setup, teardown } from "../../support/runner/run-folder.ts";

test("two projects share one folder, which the last one removes with what is left in it", () => {
  const before = process.env["TMPDIR"];
  setup();
  const path = process.env["TMPDIR"] ?? "";
  setup();
  expect(process.env["TMPDIR"]).toBe(path);
  writeFileSync(join(path, "left"), "");
  teardown();
  expect(existsSync(join(path, "left"))).toBe(true);
  teardown();
  expect(existsSync(path)).toBe(false);
  expect(process.env["TMPDIR"]).toBe(before);
});

test("what is mounted in the folder, or as it, is found; what is beside it is not", () => {
  const at = (place: string) => `36 35 98:0 / ${place} rw,noatime shared:1 - ext4 /dev/loop0 rw`;
  const mountinfo = [at("/"), at("/tmp"), at("/tmp/svc-a"), at("/tmp/svc-a/disk"), at("/tmp/svc-ab"), ""].join("\n");
  expect(mountedBelow("/tmp/svc-a", mountinfo)).toEqual(["/tmp/svc-a", "/tmp/svc-a/disk"]);
});

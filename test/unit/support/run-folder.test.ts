/** The folder of a run: made once for all of its projects, and removed with what workers left in it, unless something is mounted there. */

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { mountedBelow, setup, teardown } from "../../support/runner/run-folder.ts";

test("two projects share one folder, which the last one removes with what is left in it, but not the caches of all runs", () => {
  const before = process.env["TMPDIR"];
  const common = mkdtempSync(join(tmpdir(), "svc-common-"));
  onTestFinished(() => {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
    rmSync(common, { recursive: true });
  });
  process.env["TMPDIR"] = common;
  setup();
  const path = process.env["TMPDIR"] ?? "";
  setup();
  expect(process.env["TMPDIR"]).toBe(path);
  writeFileSync(join(path, "left"), "");
  writeFileSync(join(path, "node-compile-cache/kept"), "");
  teardown();
  expect(existsSync(join(path, "left"))).toBe(true);
  teardown();
  expect(existsSync(path)).toBe(false);
  expect(process.env["TMPDIR"]).toBe(common);
  expect(existsSync(join(common, "node-compile-cache/kept"))).toBe(true);
});

test("what is mounted in the folder, or as it, is found; what is beside it is not", () => {
  const at = (place: string) => `36 35 98:0 / ${place} rw,noatime shared:1 - ext4 /dev/loop0 rw`;
  const mountinfo = [at("/"), at("/tmp"), at("/tmp/svc-a"), at("/tmp/svc-a/disk"), at("/tmp/svc-ab"), ""].join("\n");
  expect(mountedBelow("/tmp/svc-a", mountinfo)).toEqual(["/tmp/svc-a", "/tmp/svc-a/disk"]);
});

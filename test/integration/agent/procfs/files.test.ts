/** The text of the files of svc-sizes, as programs read it. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

const SOURCES = join(import.meta.dirname, "../../../../agent/procfs/program");

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-sizes-"));
  const units = [join(SOURCES, "files.c"), join(import.meta.dirname, "one-container.c")];
  execFileSync("cc", ["-Wall", "-I", SOURCES, "-o", join(folder, "print"), ...units]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const linesOf = (name: string) => execFileSync(join(folder, "print"), [name], { encoding: "utf8" }).trim().split("\n");

test("/proc/stat of a sandbox has every line that programs read: glances ends where one of softirq is missing", () => {
  const names = linesOf("stat").map((line) => line.split(" ", 1)[0]);
  const counters = ["intr", "ctxt", "btime", "processes", "procs_running", "procs_blocked", "softirq"];
  expect(names).toEqual(["cpu", "cpu0", "cpu1", ...counters]);
  expect(linesOf("stat").at(-1)).toMatch(/^softirq( 0){11}$/);
});

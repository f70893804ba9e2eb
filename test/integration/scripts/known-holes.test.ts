/** The warning of `up` about programs with known security holes. */

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const script = join(import.meta.dirname, "../../../scripts/host/machine/known-holes.mjs");

interface Facts {
  readonly runc?: { readonly version: string; readonly changes: string };
  readonly kernel?: { readonly release: string; readonly build: string };
}

/** Identifiers of the reported holes. */
function told(facts: Facts): readonly string[] {
  const input = JSON.stringify({
    runc: { version: "1.3.3", changes: "" },
    kernel: { release: "6.12.0", build: "" },
    ...facts,
  });
  const { status, stdout } = spawnSync(process.execPath, [script, "-"], { input, encoding: "utf8" });
  expect(status).toBe(0);
  return stdout.match(/CVE-[\d-]+/g) ?? [];
}

const OF_2025 = ["CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"];

describe("runc", () => {
  test.each<[string, readonly string[]]>([
    ["1.0.0-rc6", ["CVE-2019-5736", "CVE-2024-21626", ...OF_2025]],
    ["1.0.0-rc.7", ["CVE-2024-21626", ...OF_2025]],
    ["1.0.3", ["CVE-2024-21626", ...OF_2025]],
    ["1.1.5+ds1", ["CVE-2024-21626", ...OF_2025]],
    ["1.1.12", OF_2025],
    ["1.2.7", OF_2025],
    ["1.2.8", []],
    ["1.3.2", OF_2025],
    ["1.3.3", []],
    ["1.4.0-rc.2", OF_2025],
    ["1.4.0-rc.3", []],
    ["1.4.0", []],
    ["2.0.0", []],
    ["", []],
  ])("%s has %j", (version, holes) => {
    expect(told({ runc: { version, changes: "" } })).toEqual(holes);
  });

  test("of a distribution is reported without the holes that its changelog fixes", () => {
    const changes = "runc (1.1.5+ds1-1+deb12u1) bookworm-security\n  * Backport patches for CVE-2024-21626\n";
    expect(told({ runc: { version: "1.1.5+ds1", changes } })).toEqual(OF_2025);
  });
});

describe("the kernel", () => {
  const DIRTY_PIPE = ["CVE-2022-0847"];
  const STACK_ROT = ["CVE-2023-3269"];
  test.each<[string, string, readonly string[]]>([
    ["5.4.0", "", []],
    ["5.8.0", "", DIRTY_PIPE],
    ["5.10.101", "", DIRTY_PIPE],
    ["5.10.102", "", []],
    ["5.11.9", "", DIRTY_PIPE],
    ["5.15.24-custom", "", DIRTY_PIPE],
    ["5.15.25", "", []],
    ["5.17.0", "", []],
    ["6.1.36", "", STACK_ROT],
    ["6.1.37", "", []],
    ["6.2.1", "", STACK_ROT],
    ["6.4.1", "", []],
    ["6.18.44", "", []],
    // Debian's release number stays the same; the kernel's own version is in the build text.
    ["6.1.0-9-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.27-1 (2023-05-08)", STACK_ROT],
    ["6.1.0-18-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)", []],
    // The check knows nothing about versions that vendors number themselves.
    ["5.15.0-25-generic", "#25-Ubuntu SMP", []],
    ["5.14.0-70.el9.x86_64", "#1 SMP", []],
  ])("%s (%s) has %j", (release, build, holes) => {
    expect(told({ kernel: { release, build } })).toEqual(holes);
  });
});

test("the check works on this machine, with the programs that it has", () => {
  const { status, stderr } = spawnSync(process.execPath, [script], { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
});

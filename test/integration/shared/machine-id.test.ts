/** Which programs take each other for neighbours on one machine, so that they mean the same server by the same address. */

import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { machineId } from "../../../shared/machine-id.ts";
import { checkout } from "../../support/platform/platform.ts";

const asRoot = test.skipIf(process.getuid?.() !== 0);

/** What another program is told, which the command before it starts. */
function elsewhere(...before: readonly string[]): string {
  const asks = `const { machineId } = await import("${checkout}shared/machine-id.ts"); console.log(machineId())`;
  return execFileSync("env", [...before, process.execPath, "--import", "tsx", "--input-type=module", "--eval", asks], {
    cwd: checkout,
    encoding: "utf8",
  }).trim();
}

test("another program of this machine names the same machine", () => {
  expect(elsewhere()).toBe(machineId());
});

asRoot("a program in another network of the same kernel is on another machine (only as root)", () => {
  const other = elsewhere("unshare", "--net");
  expect(other).toMatch(/^[0-9a-f-]{36} net:\[\d+\]$/);
  expect(other).not.toBe(machineId());
});

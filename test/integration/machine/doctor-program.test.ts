/** The doctor as the program that an agent starts: what it prints where there is nothing to report about. */

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const run = promisify(execFile);

async function doctor(...args: readonly string[]): Promise<unknown> {
  const program = [join(root, "node_modules/tsx/dist/cli.mjs"), join(root, "machine/main.ts"), ...args];
  const { stdout, stderr } = await run(process.execPath, program, { env: { PATH: process.env["PATH"] ?? "" } });
  expect(stderr).toBe("");
  return JSON.parse(stdout) as unknown;
}

test("a node that ./scripts/up did not set up here gets the reason, and no report about another platform", async () => {
  expect(await doctor("zzzzz", "no-such-node")).toEqual({
    problem: "/etc/svc-zzzzz has no settings of this node: ./scripts/up did not set it up",
  });
  expect(await doctor("", "no-such-node")).toEqual({
    problem: "/etc/svc has no settings of this node: ./scripts/up did not set it up",
  });
});

test("a name that no platform can have is refused in words", async () => {
  expect(await doctor("../x", "n1")).toEqual({ problem: expect.stringMatching(/^SVC_INSTANCE is wrong/) as string });
});

/** Twenty sandboxes at once: each is a sandbox of its own, and all work side by side. */

import { Sandbox } from "e2b";
import { expect, onTestFinished, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";

openPlatform();

test("twenty sandboxes that are created at once are distinct, and each runs its own command", async () => {
  const made: Sandbox[] = [];
  onTestFinished(async () => {
    await Promise.all(made.map((sandbox) => sandbox.kill()));
  });
  const results = await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      const envs = { INDEX: String(index) };
      const sandbox = await Sandbox.create({ timeoutMs: 600_000, requestTimeoutMs: 240_000, envs });
      made.push(sandbox);
      await sandbox.files.write("who.txt", String(index));
      const { stdout } = await sandbox.commands.run('echo "$INDEX $(cat who.txt) $E2B_SANDBOX_ID"');
      return { index, stdout, id: sandbox.sandboxId };
    }),
  );
  expect(new Set(results.map((result) => result.id)).size).toBe(20);
  for (const { index, stdout, id } of results) expect(stdout).toBe(`${index} ${index} ${id}\n`);
  const addresses = await Promise.all(made.map(async (sandbox) => (await sandbox.commands.run("hostname -I")).stdout));
  expect(new Set(addresses).size).toBe(20);
  const sizes = await Promise.all(
    made.map(async (sandbox) => (await sandbox.commands.run("head -c 1000000 /dev/zero | tr '\\0' x")).stdout.length),
  );
  expect(sizes).toEqual(Array.from({ length: 20 }, () => 1_000_000));
}, 400_000);

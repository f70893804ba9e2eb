/**
 * Ten rounds of pause and resume, of frozen containers and out of storage, with the agent killed in between: no byte
 * changes.
 */

import { Sandbox } from "e2b";
import { beforeAll, expect, test } from "vitest";
import { dropFrozen } from "../support/platform/frozen.ts";
import { expectNoProblems } from "../support/platform/no-problems.ts";
import { openPlatform } from "../support/platform/platform.ts";
import { killHard, untilReady } from "../support/platform/programs.ts";
import { expectKept, fillMemory } from "../support/sandbox/memory-keeper.ts";
import { ownSandbox } from "../support/sandbox/sdk.ts";

const platform = openPlatform();

beforeAll(() => untilReady(platform), 90_000);

test("64 MB on the heap, 32 MB in memory files and a tree of files survive ten rounds", async () => {
  const sandbox = await ownSandbox({ timeoutMs: 900_000 });
  const kept = await fillMemory(sandbox, 64);
  const boot = await bootId(sandbox);
  for (let round = 0; round < 10; round += 1) {
    await sandbox.pause();
    expect(await sandbox.isRunning()).toBe(false);
    // Odd rounds resume out of storage: no frozen container is left to thaw.
    if (round % 2 === 1) await dropFrozen(platform, sandbox.sandboxId);
    if (round % 3 === 2) {
      await killHard(platform, "agent");
      await untilReady(platform);
    }
    const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 900_000 });
    await expectKept(again, kept);
    expect(await bootId(again)).toBe(boot);
    if (round % 3 === 1) {
      await killHard(platform, "agent");
      await untilReady(platform);
      await expectKept(again, kept);
    }
  }
  await expectNoProblems(platform);
}, 600_000);

async function bootId(sandbox: Sandbox): Promise<string> {
  return (await sandbox.commands.run("cat /proc/sys/kernel/random/boot_id")).stdout;
}

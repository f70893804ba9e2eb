/**
 * The Docker daemon is killed and started again: sandboxes run on or are reported as ended, and the platform can make new
 * ones.
 */

import { Sandbox } from "e2b";
import { expect, test } from "vitest";
import { expectNoProblems } from "../support/platform/no-problems.ts";
import { checkout, openPlatform } from "../support/platform/platform.ts";
import { run, untilReady } from "../support/platform/programs.ts";
import { whereabouts } from "../support/sandbox/sdk.ts";

const platform = openPlatform();
// A Docker daemon on which other containers depend must not be killed.
const allowed = process.env.SVC_TEST_KILL_ENGINE === "1";

test.skipIf(!allowed)(
  "sandboxes are kept or reported as gone when dockerd is killed (only with SVC_TEST_KILL_ENGINE=1: it can take every container of the machine)",
  async () => {
    await untilReady(platform);
    const sandbox = await Sandbox.create({ timeoutMs: 600_000 });
    process.kill(Number((await run("cat", ["/var/run/docker.pid"])).trim()), "SIGKILL");
    await run(`${checkout}scripts/host/engine/start`, []);
    await untilReady(platform);
    // A daemon that `up` has started keeps its containers; one with other settings may end them.
    if ((await run("docker", ["info", "--format", "{{.LiveRestoreEnabled}}"])).trim() === "true") {
      expect((await sandbox.commands.run("echo here")).stdout).toBe("here\n");
      await sandbox.kill();
    }
    await expect.poll(() => whereabouts(sandbox), { timeout: 60_000 }).toBe("SandboxNotFoundError");
    await expect
      .poll(
        () =>
          Sandbox.create({ timeoutMs: 60_000 }).then(
            async (made) => made.kill(),
            () => false,
          ),
        {
          timeout: 60_000,
          interval: 1000,
        },
      )
      .toBe(true);
    await expectNoProblems(platform);
  },
  300_000,
);

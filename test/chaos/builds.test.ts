/**
 * kill -9 of the agent while it builds a template: the build ends with a reason, nothing is left, and the next build works.
 */

import { Template, waitForPort } from "e2b";
import { afterEach, beforeAll, expect, test } from "vitest";
import { findProblems } from "../support/platform/host-objects.ts";
import { openPlatform } from "../support/platform/platform.ts";
import { killHard, run, settingOf, untilReady } from "../support/platform/programs.ts";
import { fresh, removeAfterwards, SIZE } from "../support/platform/templates.ts";
import { ownSandbox } from "../support/sandbox/sdk.ts";

const platform = openPlatform();
const SLOW = { timeout: 90_000, interval: 300 };

beforeAll(() => untilReady(platform), 90_000);
afterEach(() => untilReady(platform), 90_000);

/** Lists the images of this node whose name contains this text, and its images without a name. */
async function images(says: string): Promise<string[]> {
  const own = `label=svc.node=${settingOf(platform, "agent", "SVC_NODE_ID")}`;
  const format = "{{.Repository}}:{{.Tag}}";
  const named = await run("docker", ["images", "-a", "--filter", own, "--format", format]);
  const dangling = await run("docker", ["images", "-q", "--filter", "dangling=true", "--filter", own]);
  return [...named.split("\n").filter((line) => line.includes(says)), ...dangling.split("\n").filter(Boolean)];
}

const server = (command: string) =>
  Template().fromTemplate("base").runCmd("echo done > ~/step").setStartCmd(command, waitForPort(8000));

test.each([
  ["a step", () => Template().fromTemplate("base").runCmd("true").runCmd("echo reached; sleep 600"), /reached/],
  ["waiting for the start command", () => server("sleep 600"), /Waiting for template to be ready/],
])(
  "an agent that is killed during %s fails the build and leaves nothing, and the next build works",
  async (_moment, definition, reached) => {
    const name = fresh("killed");
    const info = await Template.buildInBackground(definition(), name, SIZE);
    removeAfterwards(platform, info.templateId);
    const status = () => Template.getBuildStatus(info);
    const said = async () => (await status()).logEntries.map(({ message }) => message).join("\n");
    await expect.poll(said, SLOW).toMatch(reached);
    await killHard(platform, "agent");
    await untilReady(platform);

    await expect.poll(async () => (await status()).status, SLOW).toBe("error");
    expect((await status()).reason?.message).toMatch(/interrupted/);
    await expect.poll(() => findProblems(platform), SLOW).toEqual([]);
    await expect.poll(() => images(info.buildId), SLOW).toEqual([]);
    const left = async () => run("docker", ["ps", "-aq", "--filter", `label=svc.build=${info.buildId}`]);
    await expect.poll(left, SLOW).toBe("");

    const next = await Template.build(server("python3 -m http.server 8000"), name, SIZE);
    expect(next.templateId).toBe(info.templateId);
    const sandbox = await ownSandbox({ template: name });
    expect(
      (await sandbox.commands.run("cat ~/step; curl -s -o /dev/null -w '%{http_code}' localhost:8000")).stdout,
    ).toBe("done\n200");
    await sandbox.kill();
    await expect.poll(() => findProblems(platform), SLOW).toEqual([]);
  },
  600_000,
);

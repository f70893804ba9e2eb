/** A template with a start command: its sandboxes answer the first request on the port, from the pool and without it. */

import { Template, waitForPort } from "e2b";
import { expect, test } from "vitest";
import { api, asAdmin, openPlatform } from "../../support/platform/platform.ts";
import { run } from "../../support/platform/programs.ts";
import { buildTemplate, fresh } from "../../support/platform/templates.ts";
import { visit } from "../../support/sandbox/pausing.ts";
import { ownSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
/** This many creates within an hour make a build worth a pool (orchestrator/nodes/pools/pool-targets.ts). */
const POPULAR = 3;
const SLOW = { timeout: 180_000, interval: 200 };

/** Lists the full container ids of a build: those of its sandboxes, or those that wait in the pool. */
async function containersOfBuild(buildId: string, format = "{{.ID}} {{.Names}}"): Promise<string[]> {
  const filter = `label=svc.build=${buildId}`;
  return (await run("docker", ["ps", "--no-trunc", "--filter", filter, "--format", format]))
    .split("\n")
    .filter(Boolean);
}

/** What the nodes say of their pools of a build. */
async function poolOf(buildId: string): Promise<{ readonly ready: number; readonly wanted: number }> {
  const { json } = await api(platform, "GET", "/nodes", asAdmin(platform));
  const pools = (json as { pools: { buildID: string; ready: number; wanted: number }[] }[]).flatMap(
    (node) => node.pools,
  );
  const mine = pools.filter(({ buildID }) => buildID === buildId);
  const sum = (counts: readonly number[]) => counts.reduce((all, one) => all + one, 0);
  return { ready: sum(mine.map(({ ready }) => ready)), wanted: sum(mine.map(({ wanted }) => wanted)) };
}

const pooled = async (buildId: string) =>
  (await containersOfBuild(buildId)).filter((line) => line.includes(" svc-pool-")).map((line) => line.split(" ")[0]);

test("the first request to a template's port is answered in the first sandboxes, in those of the pool, and in those of the next build", async () => {
  const name = fresh("serving");
  const definition = (page: string) =>
    Template()
      .fromTemplate("base")
      .runCmd(`echo ${page} > index.html`)
      .setStartCmd("python3 -m http.server 8000", waitForPort(8000));
  const serves = async (page: string) => {
    const sandbox = await ownSandbox({ template: name });
    // One request, and before it no command and no waiting.
    expect(await visit(platform, sandbox, { port: 8000, path: "/" })).toEqual({ status: 200, text: `${page}\n` });
    return sandbox;
  };

  const first = await buildTemplate(platform, name, definition("first"));
  expect(await pooled(first.buildId)).toEqual([]);
  // The highest number of starts in about ten seconds decides how large a pool is, so these run together. Where a slow machine has
  // drawn them apart, the next ones come from the small pool that they have made.
  const wanted = async () => {
    await Promise.all(Array.from({ length: POPULAR }, () => serves("first")));
    await expect.poll(async () => (await poolOf(first.buildId)).wanted, SLOW).toBeGreaterThan(0);
    return (await poolOf(first.buildId)).wanted;
  };
  let size = await wanted();
  for (let tries = 1; tries < 4 && size < POPULAR; tries++) size = await wanted();

  // A container runs for a moment before it is ready.
  await expect.poll(async () => (await poolOf(first.buildId)).ready, SLOW).toBeGreaterThanOrEqual(POPULAR);
  const waiting = await pooled(first.buildId);
  const [one, two] = [await serves("first"), await serves("first")];
  // Each sandbox got one of the waiting containers, with an identity and a disk of its own.
  await one.files.write("/home/user/index.html", "changed\n");
  expect((await visit(platform, two, { port: 8000, path: "/" })).text).toBe("first\n");
  expect((await visit(platform, one, { port: 8000, path: "/" })).text).toBe("changed\n");
  expect((await two.commands.run("echo $E2B_SANDBOX_ID; cat ~/index.html")).stdout).toBe(`${two.sandboxId}\nfirst\n`);
  for (const { sandboxId } of [one, two]) {
    const its = async () => (await containersOfBuild(first.buildId)).find((line) => line.endsWith(` svc-${sandboxId}`));
    await expect.poll(its).toBeDefined();
    expect(waiting).toContain((await its())?.split(" ")[0]);
  }

  // The pool follows the template's name to its next build.
  const second = await buildTemplate(platform, name, definition("second"));
  await expect.poll(async () => (await pooled(second.buildId)).length, SLOW).toBeGreaterThan(0);
  await expect.poll(() => pooled(first.buildId), SLOW).toEqual([]);
  await serves("second");
}, 600_000);

test("a start command's server that listens on the address of its build alone is reached in sandboxes of the template", async () => {
  const name = fresh("own-address");
  const definition = Template()
    .fromTemplate("base")
    .runCmd("echo own > index.html")
    .setStartCmd("python3 -m http.server 8000 --bind $(hostname -I | cut -d' ' -f1)", waitForPort(8000));
  await buildTemplate(platform, name, definition);
  const sandbox = await ownSandbox({ template: name });
  expect(await visit(platform, sandbox, { port: 8000, path: "/" })).toEqual({ status: 200, text: "own\n" });
}, 300_000);

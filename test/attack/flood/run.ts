/**
 * `npm run attack -- --flood`, as root: runs the resource floods against the running platform of SVC_INSTANCE (default: the
 * default instance), in about two minutes, with sandboxes of its own. Prints memory and open files of every program before,
 * at the worst moment and after. The exit status is 1 when a program grew or kept more than it may, or when others were not
 * served.
 */

import { setMaxListeners } from "node:events";
import { readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { Sandbox } from "e2b";
import { containersOf } from "../../support/platform/host-objects.ts";
import { openPlatform, type Platform } from "../../support/platform/platform.ts";
import { egressPid, pidOf, run } from "../../support/platform/programs.ts";
import { floods, othersAreServed, type World } from "./floods.ts";
import { SERVER } from "./hostile-server.ts";
import { type Course, excesses, isSettled, table } from "./judge.ts";
import { descriptorLimitOf, useOf, type Watched, watchWorst } from "./memory.ts";

const CROWD = 10;
/** How long each flood continues once it is under way. */
const HOLD_MS = 4_000;
/** How long programs may take after a flood to close idle connections and to give memory back. */
const SETTLE_MS = 60_000;

/** @returns whether all programs stayed within their bounds */
export async function runFloods(): Promise<boolean> {
  const platform = openPlatform("");
  const sandboxes: Sandbox[] = [];
  try {
    // A policy with names: connections under it go through the egress process.
    const network = { allowOut: ["example.com"], denyOut: ["0.0.0.0/0"] };
    for (let count = 0; count <= CROWD; count += 1)
      sandboxes.push(await Sandbox.create({ timeoutMs: 300_000, ...(count === 0 ? {} : { network }) }));
    const [target, ...crowd] = sandboxes;
    if (target === undefined) throw new Error("no sandbox was made");
    await target.files.write("/tmp/server.py", SERVER);
    await (await target.commands.run("python3 /tmp/server.py", { background: true, timeoutMs: 0 })).disconnect();
    return await measure({ platform, target, crowd });
  } finally {
    await Promise.all(sandboxes.map((sandbox) => sandbox.kill()));
  }
}

async function measure(world: World): Promise<boolean> {
  const programs = await programsOf(world.platform, world.target);
  // One round of the requests that repeat later, so that what a program loads on first use counts as before the floods.
  await othersAreServed(world);
  const before = await Promise.all(programs.map(useOf));
  const worst = await Promise.all(programs.map(watchWorst));
  const wrong: string[] = [];
  for (const { name, begin } of floods) {
    const over = new AbortController();
    // Every connection listens for the abort of this signal.
    setMaxListeners(0, over.signal);
    const at = performance.now();
    try {
      await begin(world, over.signal);
      await wait(HOLD_MS);
      const served = await othersAreServed(world);
      if (!served) wrong.push(`others were not served during: ${name}`);
      const peak = await Promise.all(worst.map(async (one) => (await one.read()).memoryMb));
      const seconds = ((performance.now() - at) / 1_000).toFixed(0);
      console.log(
        `${served ? "others served" : "NOT SERVED   "}  ${seconds.padStart(3)} s  peaks ${peak.join(", ")} MB  ${name}`,
      );
    } finally {
      over.abort();
    }
  }
  const highest = await Promise.all(worst.map((one) => one.read()));
  for (const one of worst) one.stop();
  const courses = await settled(programs, (after) =>
    programs.map(({ name }, index) => ({
      name,
      before: need(before[index]),
      worst: need(highest[index]),
      after: need(after[index]),
    })),
  );
  console.log(`\n${table(courses)}\n`);
  wrong.push(...courses.flatMap(excesses));
  for (const sentence of wrong) console.log(sentence);
  return wrong.length === 0;
}

type Unlimited = Omit<Course, "descriptorLimit">;

/** Resolves as soon as all programs have given back what they must, or after the limit. */
async function settled(
  programs: readonly Watched[],
  coursesOf: (after: Awaited<ReturnType<typeof useOf>>[]) => Unlimited[],
): Promise<Course[]> {
  const limits = await Promise.all(programs.map(descriptorLimitOf));
  const end = Date.now() + SETTLE_MS;
  for (;;) {
    const courses = coursesOf(await Promise.all(programs.map(useOf)));
    if (courses.every(isSettled) || Date.now() > end)
      return courses.map((course, index) => ({ ...course, descriptorLimit: need(limits[index]) }));
    await wait(500);
  }
}

/** The node's proxy is part of the agent, and the edge is part of the orchestrator. */
async function programsOf(platform: Platform, target: Sandbox): Promise<readonly Watched[]> {
  return [
    { name: "orchestrator, edge", pid: await pidOf(platform, "orchestrator") },
    { name: "agent, node proxy", pid: await pidOf(platform, "agent") },
    { name: "egress process", pid: await egressPid(platform) },
    { name: "envd of a sandbox", pid: await envdPid(platform, target) },
  ];
}

/** Finds the first child of the container's init, by its process id on the host. */
async function envdPid(platform: Platform, { sandboxId }: Sandbox): Promise<number> {
  const container = (await containersOf(platform)).find(({ name }) => name === `svc-${sandboxId}`);
  if (container === undefined) throw new Error(`sandbox ${sandboxId} has no container`);
  const init = (await run("docker", ["inspect", "--format", "{{.State.Pid}}", container.id])).trim();
  const [envd] = (await readFile(`/proc/${init}/task/${init}/children`, "utf8")).split(" ");
  return Number(need(envd));
}

function need<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("a program was not measured");
  return value;
}

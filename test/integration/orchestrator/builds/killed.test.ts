/** kill -9 of the orchestrator while a node builds a template. */

import { expect, onTestFinished, test } from "vitest";
import { mortalProblems } from "../../../support/cluster/invariants.ts";
import { startMortalCluster } from "../../../support/cluster/mortal-cluster.ts";
import type { FakeBuild } from "../../../support/fakes/fake-agent-builds.ts";

const SLOW = { timeout: 60_000, interval: 100 };

interface Status {
  readonly status: string;
  readonly logEntries: readonly { readonly message: string }[];
}

test("an orchestrator that is killed while a node builds goes on with the build and its log, and asks the node once", async () => {
  const cluster = await startMortalCluster({});
  onTestFinished(() => cluster.stop());
  const { agent, orchestrator } = cluster;
  const running = await cluster.insist<{ sandboxID: string }>("POST", "/v2/sandboxes", { templateID: "base" });
  const held = new Promise<FakeBuild>((resolve) => {
    agent.onBuild = (build) => resolve(build);
  });
  const requested = await cluster.ask("POST", "/v3/templates", { name: "app" });
  const { templateID, buildID } = requested.body as { templateID: string; buildID: string };
  expect((await cluster.ask("POST", `/v2/templates/${templateID}/builds/${buildID}`, {})).status).toBe(202);
  const build = await held;
  const status = async () =>
    (await cluster.ask("GET", `/templates/${templateID}/builds/${buildID}/status`)).body as Status;
  build.log("before");
  // The node has the build by then, and the orchestrator knows it.
  await expect.poll(async () => (await status()).logEntries.length, SLOW).toBe(1);
  await orchestrator.killAndStart();
  build.log("after");
  build.ready();
  await expect.poll(async () => (await status()).status, SLOW).toBe("ready");
  expect((await status()).logEntries.map(({ message }) => message)).toEqual(["before", "after"]);
  expect(agent.buildsAsked).toHaveLength(1);
  const made = await cluster.insist<{ sandboxID: string }>("POST", "/v2/sandboxes", { templateID });
  for (const { sandboxID } of [running, made])
    expect((await cluster.ask("GET", `/sandboxes/${sandboxID}`)).body).toMatchObject({ state: "running" });
  await expect.poll(() => mortalProblems(cluster), SLOW).toEqual([]);
}, 180_000);

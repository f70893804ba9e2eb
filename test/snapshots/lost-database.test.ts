/** An agent that starts without its database, on a node that has sandboxes and snapshots of the lost one. */

import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Started } from "../../shared/agent-api/routes.ts";
import { containers, type RealAgent, realAgent } from "../support/agent/real-agent.ts";
import { command } from "../support/sandbox/envd-commands.ts";

const SLOW = { timeout: 60_000, interval: 100 };

let agent: RealAgent;
beforeEach(async () => {
  agent = await realAgent();
});
afterEach(() => agent.close());

const state = () => join(agent.snapshots, "..");
const aside = () => join(state(), "aside");
const images = async () => (await readdir(agent.disks)).filter((name) => name.endsWith(".img"));

async function moveDatabase(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const name of await readdir(from))
    if (name.startsWith("agent.db")) await rename(join(from, name), join(to, name));
}

async function pause({ executionId }: Started): Promise<string> {
  const body = { snapshotId: randomUUID(), memory: true };
  await agent.call.pauseExecution({ params: { executionId }, body });
  return body.snapshotId;
}

test("an agent without its database keeps all containers, memory and disks, says so, and has them again when the database is back", async () => {
  const [paused, running] = [await agent.start(), await agent.start()];
  await command(paused.address, "echo kept > ~/file");
  await command(running.address, "echo kept > ~/file");
  const snapshotId = await pause(paused);
  await agent.crash();
  const [before, disks] = [await containers(), await images()];
  expect(before).toHaveLength(2);
  await moveDatabase(state(), aside());
  await agent.launch();
  expect(agent.said()).toMatch(/"containers":2,"snapshots":1,.*the agent's database was gone/);
  // Nobody can reach the one that ran, and the rules of its network are lost.
  await expect.poll(async () => (await containers()).map((one) => one.state), SLOW).toEqual(["exited", "exited"]);
  expect((await containers()).map(({ name }) => name).sort()).toEqual(before.map(({ name }) => name).sort());
  expect(await readdir(agent.snapshots)).toEqual([snapshotId]);
  expect(await images()).toEqual(disks);
  // A second start of the new database holds them as well.
  await agent.crash();
  await agent.launch();
  expect(await containers()).toHaveLength(2);
  const other = await agent.start();
  await agent.stop(other.executionId);
  await agent.crash();
  for (const name of await readdir(state())) if (name.startsWith("agent.db")) await rm(join(state(), name));
  await moveDatabase(aside(), state());
  await agent.launch();
  const origin = { is: "paused" as const, snapshotId, memory: true };
  const again = await agent.start({ sandboxId: paused.sandboxId, origin });
  expect(again.restored).toBe("memory");
  expect((await command(again.address, "cat ~/file")).output).toBe("kept");
  await agent.stop(again.executionId);
  await expect.poll(containers, SLOW).toEqual([]);
});

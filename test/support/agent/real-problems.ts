/** What `svc doctor` would find wrong on the machine of an agent of a test: the agent's last report are the records. */

import { readInstance } from "../../../machine/base/instance.ts";
import { thisMachine } from "../../../machine/base/this-machine.ts";
import { listObjects } from "../../../machine/evidence/objects.ts";
import { nodeProblems, recordProblems } from "../../../machine/invariants/invariants.ts";
import { NETWORK, NODE_ID, type RealAgent, RUN_DIR } from "./real-agent.ts";

/** One sentence for each broken invariant. Poll it: what has just ended is removed in the background. */
export async function problemsOf(agent: Pick<RealAgent, "heartbeats" | "disks">): Promise<readonly string[]> {
  const said = agent.heartbeats.at(-1);
  if (said === undefined) return ["the agent has sent no report"];
  const settings: Readonly<Record<string, string>> = { SVC_NODE_ID: NODE_ID, SVC_DISKS_DIR: agent.disks };
  const none = readInstance("", "/nonexistent");
  const instance = {
    ...none,
    network: NETWORK,
    places: { ...none.places, run: RUN_DIR },
    setting: (_program: string, name: string) => settings[name],
  };
  const objects = await listObjects(thisMachine(instance));
  const records = {
    running: said.executions.map(({ sandboxId, endAt }) => ({
      sandboxID: sandboxId,
      endAt: new Date(endAt).toISOString(),
    })),
    paused: said.snapshots.filter(({ kind }) => kind === "pause").map(({ sandboxId }) => sandboxId),
    moving: [],
    held: [],
    unseen: 0,
  };
  const problems = [
    ...recordProblems(records, objects.containers, Date.now()),
    ...nodeProblems({ ...objects, fetchedDisks: 0 }),
  ];
  return problems.map(({ text }) => text);
}

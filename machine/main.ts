/**
 * The doctor as a program of its own, which a node's agent starts: `doctor.js INSTANCE NODE`. It prints one object of JSON, either
 * the report or why there is none, and ends by itself in time.
 */

import { withDeadline } from "./base/deadline.ts";
import { readInstance } from "./base/instance.ts";
import { thisMachine } from "./base/this-machine.ts";
import { forOthers } from "./bundle/for-others.ts";
import { knownValues } from "./bundle/known-values.ts";
import { redactor } from "./bundle/redact.ts";
import { examine } from "./doctor/doctor.ts";

/** The agent kills it some seconds later (agent/api/doctor.ts). */
const LIMIT_MS = 60_000;

async function answer(name: string, nodeId: string): Promise<object> {
  const instance = readInstance(name);
  // Another platform's files would be judged as if they were this node's.
  if (instance.setting("agent", "SVC_NODE_ID") !== nodeId) {
    return { problem: `${instance.places.config} has no settings of this node: ./scripts/up did not set it up` };
  }
  const machine = thisMachine(instance, AbortSignal.timeout(LIMIT_MS));
  const report = await withDeadline(examine(machine), LIMIT_MS);
  return { report: forOthers(report, redactor(knownValues(instance))) };
}

const [name = "", nodeId = ""] = process.argv.slice(2);
const found = await answer(name, nodeId).catch((error: unknown) => ({
  problem: error instanceof Error ? error.message : String(error),
}));
process.stdout.write(JSON.stringify(found), () => process.exit(0));

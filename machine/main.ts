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

/** The agent kills it some seconds after both (agent/api/doctor.ts). */
const LIMIT_MS = 60_000;
/** From the end of the programs that it runs to the end of what waits for them, and removes what they leave. */
const END_MS = 3_000;

async function answer(name: string, nodeId: string): Promise<object> {
  const instance = readInstance(name);
  // Another platform's files would be judged as if they were this node's.
  if (instance.setting("agent", "SVC_NODE_ID") !== nodeId) {
    return { problem: `${instance.places.config} has no settings of this node: ./scripts/up did not set it up` };
  }
  const signal = AbortSignal.timeout(LIMIT_MS);
  const report = await withDeadline(examine(thisMachine(instance, signal)), LIMIT_MS + END_MS);
  // What an interrupted program did not say would be judged as a failure.
  if (signal.aborted) throw new Error(`the checks did not end within ${LIMIT_MS / 1_000} s`);
  return { report: forOthers(report, redactor(knownValues(instance))) };
}

const [name = "", nodeId = ""] = process.argv.slice(2);
const found = await answer(name, nodeId).catch((error: unknown) => ({
  problem: error instanceof Error ? error.message : String(error),
}));
process.stdout.write(JSON.stringify(found), () => process.exit(0));

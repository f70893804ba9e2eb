/** The drain of a node, followed to its end. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Reply } from "../../api/client.ts";
import type { Action } from "../../definition.ts";
import { EXIT } from "../../failure.ts";
import { age } from "../../output/time.ts";

type Drain = Reply<"GET /nodes/{nodeID}/drain">;

const POLL_MS = 1_000;

const LEFT: Partial<Record<Drain["sandboxes"][number]["state"], string>> = {
  stays: "stays",
  waiting: "is still there",
  moving: "is between two nodes",
  moved: "was moved, and does not run",
};

export const drain: Action = async ({ admin, out, signal }, { first: nodeID }, options) => {
  const connection = await admin();
  let state: Drain = await connection.call("POST /nodes/{nodeID}/drain", {
    params: { nodeID },
    body: {
      ...(options.deadline === undefined ? {} : { deadlineSeconds: options.deadline }),
      ...(options.finish === true ? { running: "finish" as const } : {}),
      ...(options.atDeadline === undefined ? {} : { atDeadline: options.atDeadline }),
      ...(options.atOnce === undefined ? {} : { atOnce: options.atOnce }),
    },
  });
  let told = "";
  try {
    for (;;) {
      const now = progress(state);
      if (now !== told) out.note(`node ${nodeID}: ${now}`);
      told = now;
      if (state.state !== "draining" || options.detach === true) break;
      await sleep(POLL_MS, undefined, { signal });
      state = await connection.call("GET /nodes/{nodeID}/drain", { params: { nodeID } });
    }
  } catch (error) {
    if (signal.aborted) {
      out.note(
        `the drain goes on: svc node drain ${nodeID} follows it again, svc node uncordon ${nodeID} takes the node back`,
      );
    }
    throw error;
  }
  for (const note of leftBehind(state)) out.note(note);
  if (!(await out.structured(state, options))) {
    await out.line(options.detach === true ? `node/${nodeID} drains` : `node/${nodeID} ${state.state}`);
  }
  return state.state === "done" || options.detach === true ? 0 : exitCodeOf(state);
};

/** The sandboxes that the drain has left behind, and why. While the drain goes on, a sandbox that waits for its turn is not one of them. */
export function leftBehind({ state, sandboxes }: Pick<Drain, "state" | "sandboxes">): string[] {
  return sandboxes.flatMap(({ sandboxID, state: its, reason }) => {
    const what = its === "waiting" && state === "draining" ? undefined : LEFT[its];
    return what === undefined || reason === null ? [] : [`sandbox ${sandboxID} ${what}: ${reason}`];
  });
}

function exitCodeOf({ state }: Drain): number {
  return state === "overdue" ? EXIT.timedOut : EXIT.failed;
}

function progress({ state, begunAt, sandboxes, left }: Drain): string {
  const moved = sandboxes.filter((one) => one.state === "moved" || one.state === "stored").length;
  const parts = [
    `${moved} of ${sandboxes.length} moved`,
    `${left.sandboxes} run there`,
    `${left.pausedSandboxes} paused`,
  ];
  return `${state}, ${parts.join(", ")}${state === "draining" ? "" : `, after ${age(begunAt)}`}`;
}

/** Handlers of the operators' routes about drains. */

import type { Drain, drainApi } from "../../../shared/api/nodes/drains.ts";
import type { Handlers } from "../../../shared/http/contract.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import { iso } from "../../forms/time.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { DrainMoveRecord } from "../../store/nodes/drain-record.ts";
import type { Store } from "../../store/store.ts";
import { drainState, whyWaiting } from "./drain-plan.ts";
import { sidesOf } from "./progress.ts";

export interface DrainHandlersDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  /** The next round begins at once. */
  readonly wake: () => void;
  readonly now: () => number;
}

const AT_ONCE = 2;

export function createDrainHandlers({ store, nodes, wake, now }: DrainHandlersDeps): Handlers<typeof drainApi> {
  async function show(nodeId: string): Promise<Drain> {
    const drain = await store.drains.get(nodeId);
    if (drain === undefined) throw new AppError("not_found", `node '${nodeId}' was never drained`);
    const { here, moves } = await sidesOf(nodeId, store);
    const named = new Set(moves.map(({ sandboxId }) => sandboxId));
    const waiting = here
      .filter(({ id }) => !named.has(id))
      .map(({ id, state }) => toWaiting(id, state, whyWaiting(state, { drain, now: now() })));
    return {
      nodeID: nodeId,
      state: drainState({ drain, here, moves, now: now() }),
      begunAt: iso(drain.begunAt),
      deadlineAt: drain.deadlineAt === undefined ? null : iso(drain.deadlineAt),
      endedAt: drain.endedAt === undefined ? null : iso(drain.endedAt),
      running: drain.running,
      atDeadline: drain.atDeadline,
      atOnce: drain.atOnce,
      sandboxes: [...moves.map(toDrained), ...waiting],
      left: await store.nodes.contents(nodeId),
    };
  }

  return {
    async drainNode({ params: { nodeID }, body }) {
      const { deadlineSeconds, running = "move", atDeadline = "stay", atOnce = AT_ONCE } = body;
      if (nodes.get(nodeID) === undefined) throw new AppError("not_found", `node '${nodeID}' not found`);
      if (atDeadline === "kill" && deadlineSeconds === undefined)
        throw new AppError("bad_request", "body field 'atDeadline': without 'deadlineSeconds' no deadline comes");
      await nodes.setWanted(nodeID, "draining");
      const deadlineAt = deadlineSeconds === undefined ? undefined : now() + deadlineSeconds * 1000;
      await store.drains.begin(nodeID, { running, atDeadline, atOnce, deadlineAt });
      wake();
      return show(nodeID);
    },
    getDrain: ({ params }) => show(params.nodeID),
  };
}

function toDrained({
  sandboxId,
  was,
  state,
  toNode,
  reason,
  stallMs,
  at,
}: DrainMoveRecord): Drain["sandboxes"][number] {
  return {
    sandboxID: sandboxId,
    was,
    state,
    toNodeID: toNode ?? null,
    reason: reason ?? null,
    stallMs: stallMs ?? null,
    at: iso(at),
  };
}

function toWaiting(id: string, state: SandboxState, reason: string): Drain["sandboxes"][number] {
  const was = state === "paused" ? ("paused" as const) : ("running" as const);
  return { sandboxID: id, was, state: "waiting", toNodeID: null, reason, stallMs: null, at: null };
}

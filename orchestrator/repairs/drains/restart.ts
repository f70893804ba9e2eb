/**
 * Starts a sandbox again that a drain has paused, on the node that has its snapshot now. A sandbox that this node does not start goes
 * back to its own node, which still has the snapshot. One that neither node starts stays paused, and its row says why.
 */

import type { NodeStatus } from "../../../shared/api/nodes/nodes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Lifecycle } from "../../lifecycle/wire.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { DrainOutcome } from "../../store/nodes/drains.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Store } from "../../store/store.ts";
import { afterRefusal } from "./drain-plan.ts";
import { asFound, reasonOf, stays } from "./outcomes.ts";

interface RestartDeps {
  readonly store: Pick<Store, "sandboxes" | "drains">;
  readonly nodes: Pick<Nodes, "get">;
  readonly lifecycle: Pick<Lifecycle, "resuming">;
  readonly now: () => number;
  readonly log: Log;
}

/** A sandbox that stands still. */
interface Still {
  /** The end that it had before. */
  readonly endAt: number;
  /** The node that is drained. */
  readonly home: string;
  /** When it was paused. */
  readonly begun: number;
  /** Why it is not on another node; absent: it is, or may be. */
  readonly why?: unknown;
}

interface Refused {
  readonly begun: number;
  readonly since: number;
}

/** Undefined: it does not run yet, and the next round goes on. */
type Restart = (record: SandboxRecord, still: Still) => Promise<DrainOutcome | undefined>;

/** It had its place before: a move must not end at a limit that others have reached meanwhile. */
const NO_LIMIT = { sandboxes: 2_147_483_647 };

export function createRestart({ store, nodes, lifecycle, now, log }: RestartDeps): Restart {
  /** The first refusal of each sandbox that this process has got since the pause. */
  const refusals = new Map<string, Refused>();

  async function start({ id, snapshot }: SandboxRecord, { endAt }: Still, here: boolean): Promise<void> {
    const seconds = Math.max(1, Math.ceil((endAt - now()) / 1000));
    await lifecycle.resuming.resume(id, { memory: snapshot?.memory ?? true, seconds, limit: NO_LIMIT, here });
  }

  async function refused(id: string, still: Still, error: unknown): Promise<DrainOutcome | undefined> {
    const { home, begun } = still;
    log.error({ err: error, sandboxId: id, home }, "a drain could not start a sandbox again yet");
    const failure = AppError.from(error);
    const current = await store.sandboxes.get(id);
    if (current === undefined || current.state === "gone") return { state: "ended" };
    await store.drains.explain({ nodeId: home, sandboxId: id }, reasonOf(failure));
    const known = refusals.get(id);
    const since = known?.begun === begun ? known.since : now();
    refusals.set(id, { begun, since });
    const { nodeId, snapshot } = current;
    // Only the node knows whether it has started it.
    if (current.state !== "paused" || snapshot === undefined) return undefined;
    const isAway = nodeId !== home;
    const next = afterRefusal({
      code: failure.code,
      mayReturn: isAway && answers(nodes.get(home)?.status),
      refusedForMs: now() - since,
    });
    if (next === "later") return undefined;
    if (next === "settle")
      return isAway ? { state: "moved", toNode: nodeId, reason: reasonOf(failure) } : stays(failure);
    if (!(await store.drains.rehome({ id, snapshotId: snapshot.id, from: nodeId, to: home }))) return undefined;
    return startHome(current, still, failure);
  }

  /** @param failure why the other node has not started it */
  async function startHome(record: SandboxRecord, still: Still, failure: AppError): Promise<DrainOutcome | undefined> {
    try {
      await start(record, still, true);
    } catch (error) {
      return refused(record.id, still, error);
    }
    return found(record.id, still.home, failure);
  }

  async function found(id: string, home: string, why: unknown): Promise<DrainOutcome> {
    const outcome = asFound(await store.sandboxes.get(id), home);
    return outcome.state === "stays" && why !== undefined ? stays(why) : outcome;
  }

  return async (record, still) => {
    const { id } = record;
    // Its owner has paused it meanwhile: the next round carries it as it is.
    if (!(await store.drains.isMoving(id))) {
      refusals.delete(id);
      return undefined;
    }
    const outcome = await start(record, still, false).then(
      () => found(id, still.home, still.why),
      (error: unknown) => refused(id, still, error),
    );
    if (outcome !== undefined) refusals.delete(id);
    return outcome;
  };
}

/** The node may start what it has. */
function answers(status: NodeStatus | undefined): boolean {
  return status === "ready" || status === "standby" || status === "draining";
}

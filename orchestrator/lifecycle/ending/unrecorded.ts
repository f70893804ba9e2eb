/**
 * Kills and pauses that the database cannot record now, also not in the room that it holds back: the node carries them out
 * all the same, the caller gets the reason, and the record follows when there is room.
 */

import { AppError } from "../../../shared/http/errors.ts";
import { storageFailure } from "../../../shared/http/storage-failures.ts";
import type { EndReason } from "../../../shared/states/end-reason.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Core } from "../core.ts";

/** Why the move could not be written. */
interface Unwritten {
  readonly error: unknown;
  /** Only if the sandbox's end is not later. */
  readonly endAtMost?: number | undefined;
}

interface PauseAsked {
  readonly id: string;
  readonly body: { readonly snapshotId: string; readonly memory: boolean; readonly frozen?: false };
}

interface UnrecordedKill {
  readonly id: string;
  readonly executionId: string;
  readonly reason: EndReason;
}

export interface UnrecordedKills {
  /** Has the node end a sandbox that runs by its record. Rejects with the reason in any case. */
  end(id: string, reason: EndReason, why: Unwritten): Promise<never>;
  /** What is to be recorded, of this process: after its end, the nodes' reports tell that these sandboxes are lost. */
  list(): readonly UnrecordedKill[];
  recorded(id: string): void;
}

export function createUnrecordedKills(core: Core): UnrecordedKills {
  const kills = new Map<string, UnrecordedKill>();
  return {
    async end(id, reason, why) {
      const found = await runningBy(id, why, core);
      if (found === undefined) throw why.error;
      const { executionId, nodeId } = found.record;
      try {
        await core.nodes
          .agent(nodeId)
          .stopExecution({ params: { executionId } }, { timeoutMs: core.timeouts.stopTimeoutMs });
      } catch (error) {
        core.log.warn({ err: error, nodeId, executionId }, "could not ask a node to stop an execution");
        throw why.error;
      }
      await core.routes.remove(id, executionId, "killed");
      if (!kills.has(id))
        core.log.warn({ sandboxId: id, executionId, reason }, "ended a sandbox without a record of it");
      kills.set(id, { id, executionId, reason });
      throw new AppError(found.code, `${found.message}. The sandbox has ended on its node; ${FOLLOWS}`, {
        cause: why.error,
      });
    },
    list: () => [...kills.values()],
    recorded: (id) => void kills.delete(id),
  };
}

/** Has the node pause a sandbox that runs by its record; the node's next report has the snapshot. Rejects in any case. */
export async function pauseUnrecorded({ id, body, ...why }: Unwritten & PauseAsked, core: Core): Promise<never> {
  const found = await runningBy(id, why, core);
  if (found === undefined) throw why.error;
  const { executionId, nodeId } = found.record;
  await core.routes.suspend(id, executionId);
  try {
    await core.nodes
      .agent(nodeId)
      .pauseExecution({ params: { executionId }, body }, { timeoutMs: core.timeouts.snapshotTimeoutMs });
  } catch (error) {
    core.log.warn({ err: error, nodeId, executionId }, "a node did not pause a sandbox that cannot be recorded");
    // It may have paused it already, at an earlier request: only a report tells, and a route to nothing is harmless.
    core.routes.add(found.record);
    throw why.error;
  }
  await core.routes.remove(id, executionId, "paused");
  core.log.warn({ sandboxId: id, executionId, snapshotId: body.snapshotId }, "paused a sandbox without a record of it");
  throw new AppError(found.code, `${found.message}. The sandbox is paused on its node; ${FOLLOWS}`, {
    cause: why.error,
  });
}

const FOLLOWS = "its record follows when the database can be written";

async function runningBy(
  id: string,
  { error, endAtMost }: Unwritten,
  { store }: Core,
): Promise<
  { readonly record: SandboxRecord; readonly code: "no_space" | "unavailable"; readonly message: string } | undefined
> {
  const failure = storageFailure(error);
  if (failure === undefined) return undefined;
  const record = await store.sandboxes.get(id);
  if (record?.state !== "running" || (endAtMost !== undefined && record.endAt > endAtMost)) return undefined;
  return { record, ...failure };
}

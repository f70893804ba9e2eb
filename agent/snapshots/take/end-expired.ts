/** Ends a sandbox whose timeout has passed while the orchestrator is away, as its owner chose: by a pause, or by a kill. */

import { randomUUID } from "node:crypto";
import { isError, isMemoryRefused } from "../../../shared/http/errors.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Sandboxes } from "../../sandboxes/sandboxes.ts";
import type { SnapshotTaker } from "./snapshot-taker.ts";

interface EndDeps {
  readonly sandboxes: Pick<Sandboxes, "get" | "end">;
  readonly taker: Pick<SnapshotTaker, "pause">;
  readonly log: Log;
}

/** A sandbox that cannot be paused continues; the next round tries again. */
export async function endExpired(executionId: string, { sandboxes, taker, log }: EndDeps): Promise<void> {
  const sandbox = sandboxes.get(executionId);
  if (sandbox === undefined) return;
  const { does, memory } = sandbox.onTimeout;
  if (does === "kill") return sandboxes.end(executionId, "expired");
  const pause = async (withMemory: boolean) => {
    await taker.pause(executionId, { snapshotId: randomUUID(), memory: withMemory });
    log.info({ executionId, memory: withMemory }, "paused an expired sandbox");
  };
  try {
    await pause(memory).catch((error: unknown) => {
      if (!memory || !isMemoryRefused(error)) throw error;
      // No caller waits, and the timeout has passed.
      log.warn({ err: error, executionId }, "could not keep the memory at the timeout; pausing with the disk only");
      return pause(false);
    });
  } catch (error) {
    // Another request is pausing, stopping or copying it now.
    if (!isError(error, "conflict") && !isError(error, "sandbox_not_found")) throw error;
  }
}

/**
 * Starts an execution in the place of another one of the same sandbox, for a rewind: the former one stands still while the new one
 * starts, ends with its success, and goes on after its failure.
 */

import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Gate } from "../network/gate.ts";
import type { Former, Launched } from "./become-sandbox.ts";
import type { Disposal } from "./disposal.ts";
import type { Sandbox } from "./sandbox.ts";
import type { Start } from "./start.ts";

interface ReplacingDeps {
  readonly start: Start;
  readonly running: (executionId: string) => Sandbox | undefined;
  /** Takes it out of the live set while the work runs, and for good when that succeeds. */
  readonly leave: <T>(executionId: string, work: (sandbox: Sandbox) => Promise<T>) => Promise<T>;
  readonly disposal: Pick<Disposal, "kill" | "remove">;
  readonly gate: Pick<Gate, "hold" | "open">;
  /** Reads the last log lines while it runs. Never throws, and its time is limited. */
  readonly beforeEnd: (sandbox: Sandbox) => Promise<void>;
  readonly log: Log;
}

type Spec = Parameters<Start>[0];

export function createReplacing(deps: ReplacingDeps) {
  const { start, running, leave, disposal, log } = deps;

  /** @throws {AppError} sandbox_not_found; conflict for an execution of another sandbox; what the start throws */
  return async (formerId: string, spec: Spec, signal: AbortSignal): Promise<Launched> => {
    const found = running(formerId);
    if (found === undefined)
      throw new AppError("sandbox_not_found", `execution ${formerId}, which is to end, does not run on this node`);
    const { container, sandboxId } = found;
    if (sandboxId !== spec.body.sandboxId)
      throw new AppError("conflict", `execution ${formerId} is of sandbox ${sandboxId}, not of ${spec.body.sandboxId}`);
    const launched = await leave(formerId, (sandbox) => start({ ...spec, former: formerOf(sandbox, deps) }, signal));
    // It is recorded as ended: a later agent process would remove it, too.
    await disposal
      .kill(container)
      .catch((error: unknown) =>
        log.error({ err: error, executionId: formerId }, "could not kill a replaced execution"),
      );
    disposal.remove(container);
    return launched;
  };
}

function formerOf(sandbox: Sandbox, { gate, beforeEnd }: ReplacingDeps): Former {
  const { executionId, sandboxId, container, egress } = sandbox;
  const { slot, cgroup } = container;
  const before = { frozen: false };
  return {
    executionId,
    containerId: container.id,
    async standStill() {
      await beforeEnd(sandbox);
      before.frozen = cgroup.frozen();
      // Waits for both: a freeze that still tries when `goOn` has thawed the sandbox would leave it frozen.
      const outcomes = await Promise.allSettled([gate.hold(slot), cgroup.freeze()]);
      for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    },
    async goOn() {
      // One that its node holds, for its disk or its lease, stays held.
      if (!before.frozen) cgroup.thaw();
      await gate.open(slot, { executionId, sandboxId }, egress);
    },
  };
}

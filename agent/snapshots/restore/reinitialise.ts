/** Sets the identity of a restored container (token, clock, network policy) and opens its network. */

import type { StartRequest } from "../../../shared/agent-api/routes.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Teardown } from "../../../shared/program/teardown.ts";
import type { CaFor, Envd, NetworkVariables } from "../../containers/envd.ts";
import type { LiveContainer } from "../../containers/live-container.ts";
import type { Gate } from "../../network/gate.ts";
import { networkInit, toInit } from "../../sandboxes/launch.ts";
import type { Stores } from "../../store/stores.ts";

export interface ReinitialiseDeps {
  readonly stores: Pick<Stores, "snapshots" | "executions" | "containers">;
  readonly envd: Pick<Envd, "init" | "ready" | "resumeWatches">;
  readonly gate: Pick<Gate, "open" | "close">;
  readonly caFor: CaFor;
  readonly networkVariables: NetworkVariables;
  readonly now: () => number;
  readonly log: Log;
}

/** Adds the row of an execution that does not run yet, so that a crash from here on leaves a row. */
export function intend(
  { executionId, body }: { readonly executionId: string; readonly body: StartRequest },
  containerId: string,
  { stores, now }: Pick<ReinitialiseDeps, "stores" | "now">,
  teardown: Teardown,
): void {
  const { sandboxId, projectId, egress, endAt, onTimeout, onTimeoutMemory = true, record } = body;
  stores.executions.add({
    id: executionId,
    sandboxId,
    projectId,
    containerId,
    egress,
    endAt,
    onTimeout: { does: onTimeout, memory: onTimeoutMemory },
    startedAt: now(),
    warm: false,
    running: false,
    record,
  });
  teardown.add("execution", () => stores.executions.remove(executionId));
}

interface ReinitialiseSpec {
  readonly executionId: string;
  readonly body: StartRequest;
  readonly container: LiveContainer;
  /** Whether envd has to resume watches, which were closed before the dump. */
  readonly watches: boolean;
  /** Token of its envd until it gets the container's own. */
  readonly currentToken?: string;
}

/** Resolves to the time from which on the sandbox runs. */
export async function reinitialise(
  { executionId, body, container, watches, currentToken }: ReinitialiseSpec,
  { envd, gate, now, log, ...deps }: ReinitialiseDeps,
  { teardown, signal }: { teardown: Teardown; signal: AbortSignal },
): Promise<number> {
  const { slot, controlToken } = container;
  const at = { address: slot.address, controlToken: currentToken ?? controlToken };
  // A copy may have another policy than its source, and the company another network than when the snapshot was taken.
  const init = toInit(executionId, body, now(), await networkInit(body.egress, deps));
  teardown.add("network", () => gate.close(slot));
  // If the directory of a watch is gone, envd reports that to its client.
  const rearm = () =>
    envd
      .resumeWatches({ ...at, controlToken })
      .catch((error: unknown) => log.warn({ err: error, executionId }, "could not resume the watches of a sandbox"));
  await Promise.all([
    watches && currentToken === undefined ? rearm() : undefined,
    envd.init(at, currentToken === undefined ? init : { ...init, controlToken }, signal),
    gate.open(slot, { executionId, sandboxId: body.sandboxId }, body.egress),
  ]);
  signal.throwIfAborted();
  if (watches && currentToken !== undefined) await rearm();
  return now();
}

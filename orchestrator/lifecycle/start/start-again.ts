/** Asks a sandbox's own node to start it from what is stored there: a resume, a rewind. No other node can take it over meanwhile. */

import type { Origin, Resources, Started } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { within } from "../../../shared/program/deadline.ts";
import { openPassword } from "../../network-policy/secret.ts";
import { callAgain } from "../../nodes/retry.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Core } from "../core.ts";
import { startRequest } from "./start-request.ts";

export interface AgainAsk {
  readonly record: SandboxRecord;
  readonly executionId: string;
  readonly origin: Origin;
  /** Called each time the node is asked. */
  readonly endAt: () => number;
  /** What the node has not promised to the sandbox yet. */
  readonly promise: Resources;
  /** The node may have been asked before. */
  readonly repeated: boolean;
  /** For messages, for example "resume". */
  readonly what: string;
}

/** @throws {AppError} the node's reason; node_unreachable when it is open what the node has done */
export async function startAgain(ask: AgainAsk, core: Core): Promise<Started> {
  const { record, executionId, endAt, promise, repeated, what } = ask;
  const { timeouts, now, random } = core;
  const { id, nodeId } = record;
  const body = await bodyOf(ask, core).catch((reason: unknown) => {
    if (!repeated) throw reason;
    const message = `node ${nodeId} cannot be asked again for the ${what}: the record cannot be read`;
    throw new AppError("node_unreachable", message, { cause: reason });
  });
  const placed = core.nodes.placing(nodeId, promise);
  const since = Date.now();
  try {
    const started = await callAgain(
      async () => {
        const release = await turn(ask, since, core);
        try {
          return await core.nodes
            .agent(nodeId)
            .startExecution(
              { params: { executionId }, body: { ...body, endAt: endAt() } },
              { timeoutMs: timeouts.resumeTimeoutMs },
            );
        } finally {
          release();
        }
      },
      // Only this node has the state.
      { now, random, patienceMs: timeouts.patienceMs, repeated, whenBusy: "wait" },
    );
    placed("started");
    return started;
  } catch (reason) {
    placed({ failed: AppError.from(reason) });
    core.log.warn({ err: reason, sandboxId: id, executionId, nodeId }, `could not ${what} a sandbox on its node`);
    throw reason;
  }
}

async function bodyOf({ record, origin }: AgainAsk, { store, seeds, sealing }: Core) {
  const { id } = record;
  const sealed = await store.sandboxes.envs(id);
  return startRequest(record, {
    seeds,
    envs: sealed === undefined ? {} : (JSON.parse(sealing.open(sealed, id)) as Record<string, string>),
    proxyPassword: openPassword(sealing, record.sealedProxyPassword, id),
    build: await store.templates.build(record.buildId),
    origin,
  });
}

/** A project's resumes do not wait behind its creates: they take turns with them. */
async function turn(
  { record: { nodeId, projectId }, what }: AgainAsk,
  since: number,
  { turns, timeouts }: Core,
): Promise<() => void> {
  return within(timeouts.patienceMs, async (signal) => {
    const { release } = await turns
      .take(nodeId, { owner: `resumes of ${projectId}`, since, signal })
      .catch((reason: unknown) => {
        if (!signal.aborted) throw reason;
        throw new AppError("node_busy", `node ${nodeId} had no turn for a ${what} within ${timeouts.patienceMs} ms`);
      });
    return release;
  });
}

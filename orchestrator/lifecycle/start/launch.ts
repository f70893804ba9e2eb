/** Starts a new sandbox: record first, then a node, then the move to running. A failure leaves nothing behind. */

import type { Started } from "../../../shared/agent-api/routes.ts";
import { defined } from "../../../shared/defined.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { newExecutionId } from "../../../shared/ids.ts";
import { noTiming } from "../../../shared/program/tracing/timing.ts";
import { cleanDetail, type End } from "../../../shared/states/end-reason.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import { findPlace } from "./find-place.ts";
import type { LaunchDeps, LaunchRequest } from "./launch-request.ts";
import { killedMeanwhile, Search } from "./search.ts";

/** Of one of several sandboxes that a request starts. */
export type StartOutcome = { readonly record: SandboxRecord } | { readonly error: AppError };

export type Launch = (request: LaunchRequest) => Promise<SandboxRecord>;

/** Added to the search's own deadline before a start counts as abandoned by a crashed orchestrator. */
const DEADLINE_SLACK_MS = 30_000;
/** The record follows the search's deadline, which moves while it waits for turns here and on the node, in steps of this at least. */
const FOLLOWS_AFTER_MS = DEADLINE_SLACK_MS / 3;

export function createLaunch(deps: LaunchDeps): Launch {
  return async (request) => {
    const begun = performance.now();
    const { timing = noTiming } = request;
    try {
      const { record, warm } = await run(await timing.measure("place", () => findPlace(request, deps)), deps);
      deps.observe({ warm, seconds: (performance.now() - begun) / 1000 });
      return record;
    } catch (reason) {
      deps.observe({ failed: AppError.from(reason).code });
      throw reason;
    }
  };
}

async function run(request: LaunchRequest, deps: LaunchDeps): Promise<{ record: SandboxRecord; warm: boolean }> {
  const { id } = request.sandbox;
  const { timing = noTiming } = request;
  deps.core.store.admit();
  const search = new Search(request, deps, follow);
  let execution: { executionId: string; nodeId: string } | undefined;
  let recorded = search.deadline;
  async function follow(deadline: number): Promise<boolean> {
    if (execution === undefined || deadline < recorded + FOLLOWS_AFTER_MS) return true;
    const { executionId } = execution;
    const deadlineAt = deadline + DEADLINE_SLACK_MS;
    const isStarting = await deps.core.store.sandboxes.changeStart(id, executionId, { deadlineAt });
    if (isStarting) recorded = deadline;
    return isStarting;
  }
  try {
    for (;;) {
      const { nodeId, placed } = await timing.measure("place", () => search.node());
      const former = execution;
      const claiming = () => claim(request, deps, former, { nodeId, deadlineAt: recorded + DEADLINE_SLACK_MS });
      execution = await timing.measure("store", claiming).catch((reason: unknown) => {
        placed("refused");
        throw reason;
      });
      const started = await search.attempt(execution, placed);
      if (started !== undefined) {
        const chosen = execution;
        const record = await timing.measure("store", () => settle(request, deps, chosen, started));
        return { record, warm: started.warm };
      }
    }
  } catch (reason) {
    if (execution !== undefined) {
      const { executionId, nodeId } = execution;
      try {
        // The record first, so that the API shows nothing as running. A node that misses the request to end the
        // execution reports it, and reconciliation ends it then.
        await deps.core.store.move({
          id,
          to: "gone",
          when: { executionId, from: ["starting"] },
          set: { endedAt: deps.core.now(), end: failedStart(AppError.from(reason)) },
        });
      } finally {
        // Also where the database takes no record of it now: housekeeping ends the record after its deadline.
        deps.core.background.run("end failed start", () => deps.ending.end(nodeId, executionId));
      }
    }
    throw reason;
  }
}

/** The record of this attempt: inserted at the first attempt, moved to another execution at later ones. */
async function claim(
  { sandbox, limit }: LaunchRequest,
  deps: LaunchDeps,
  former: { executionId: string; nodeId: string } | undefined,
  { nodeId, deadlineAt }: { readonly nodeId: string; readonly deadlineAt: number },
): Promise<{ executionId: string; nodeId: string }> {
  if (former?.nodeId === nodeId) return former;
  const execution = { executionId: newExecutionId(), nodeId };
  if (former === undefined) {
    const now = deps.core.now();
    const record = {
      ...sandbox,
      ...execution,
      startedAt: now,
      endAt: now + sandbox.timeoutSeconds * 1000,
      deadlineAt,
    };
    if (await deps.core.store.sandboxes.add(record, limit)) return execution;
    throw await deps.core.refusals.start(sandbox.projectId, sandbox, limit);
  }
  if (await deps.core.store.sandboxes.changeStart(sandbox.id, former.executionId, execution)) return execution;
  throw killedMeanwhile(sandbox.id);
}

/** starting → running. The timeout begins now, so that a slow start does not shorten it. */
async function settle(
  { sandbox }: LaunchRequest,
  deps: LaunchDeps,
  execution: { executionId: string },
  started: Started,
): Promise<SandboxRecord> {
  const now = deps.core.now();
  const record = await deps.core.store.move(
    {
      id: sandbox.id,
      to: "running",
      when: { executionId: execution.executionId, from: ["starting"] },
      set: {
        address: started.address,
        envdVersion: started.envdVersion,
        startedAt: now,
        endAt: now + sandbox.timeoutSeconds * 1000,
      },
    },
    { type: "created" },
  );
  if (record === undefined) throw killedMeanwhile(sandbox.id);
  deps.core.routes.add(record);
  return record;
}

/** The caller got the same words. */
function failedStart({ message }: AppError): End {
  const detail = cleanDetail(message);
  return { reason: "create_failed", ...defined({ detail }) };
}

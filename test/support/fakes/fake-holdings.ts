/** What a fake agent keeps for sandboxes, as a real one describes it to a database that adopts it. */

import type { Serving } from "../../../agent/serving/serving.ts";
import type { Holdings, StartRequest, StoredSnapshot } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { Started } from "./fake-agent-shapes.ts";

interface Kept {
  readonly serving: Pick<Serving, "served" | "refusal">;
  readonly live: ReadonlyMap<string, Started>;
  readonly snapshots: ReadonlyMap<string, StoredSnapshot>;
  readonly starts: readonly Started[];
  readonly address: string;
}

export function fakeHoldings({ serving: { served, refusal }, live, snapshots, starts, address }: Kept): Holdings {
  return {
    ...(served === undefined ? {} : { served }),
    ...(refusal === undefined ? {} : { refusal }),
    executions: [...live.values()].map(({ executionId, body, startedAt, endAt }) => ({
      executionId,
      sandboxId: body.sandboxId,
      address,
      startedAt,
      endAt,
      onTimeout: body.onTimeout,
      onTimeoutMemory: body.onTimeoutMemory ?? true,
      ...keptOf(body),
    })),
    snapshots: [...snapshots.values()].map((stored) => {
      const body = starts.find(({ executionId }) => executionId === stored.executionId)?.body;
      if (body === undefined) throw new AppError("internal", "a snapshot of an execution that was never started");
      return { ...stored, ...keptOf(body) };
    }),
  };
}

function keptOf({ build, resources, projectId, record }: StartRequest) {
  return {
    build,
    resources,
    ...(projectId === undefined ? {} : { projectId }),
    ...(record === undefined ? {} : { record }),
  };
}

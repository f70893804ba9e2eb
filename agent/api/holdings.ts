/** Answers what this node keeps for sandboxes, for an operator who lets another store adopt them. */

import type { Holdings } from "../../shared/agent-api/routes.ts";
import { defined } from "../../shared/defined.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Serving } from "../serving/serving.ts";
import { toStored } from "../snapshots/store/snapshots.ts";
import type { BuildStore } from "../store/builds.ts";
import type { SnapshotStore } from "../store/snapshots.ts";

interface HoldingsDeps {
  readonly running: () => readonly Sandbox[];
  readonly stores: { readonly snapshots: Pick<SnapshotStore, "all">; readonly builds: Pick<BuildStore, "get"> };
  readonly serving: Pick<Serving, "served" | "refusal">;
}

export function describeHoldings({ running, stores, serving }: HoldingsDeps): Holdings {
  const { served, refusal } = serving;
  return {
    ...defined({ served, refusal }),
    executions: running().map(
      ({ executionId, sandboxId, projectId, container, startedAt, endAt, onTimeout, record }) => ({
        executionId,
        sandboxId,
        address: container.slot.address,
        startedAt,
        endAt,
        onTimeout: onTimeout.does,
        onTimeoutMemory: onTimeout.memory,
        ...optional(projectId, record),
        build: container.build,
        resources: container.resources,
      }),
    ),
    snapshots: stores.snapshots
      .all()
      .filter(({ state, executionId }) => state === "stored" && stores.builds.get(executionId) === undefined)
      .map((snapshot) => ({
        ...toStored(snapshot),
        ...optional(snapshot.projectId, snapshot.record),
        build: snapshot.disk.build,
        resources: snapshot.disk.resources,
        ...defined({ held: snapshot.held }),
      })),
  };
}

function optional(projectId: string | undefined, record: string | undefined) {
  return defined({ projectId, record });
}

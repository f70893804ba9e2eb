/** Sandboxes that their node holds for want of disk: writes one event for each hold and release, and marks their routes. */

import type { Heartbeat } from "../../../shared/agent-api/routes.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Routes } from "../../routing-table.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Store } from "../../store/store.ts";

export interface HoldingDeps {
  readonly store: Pick<Store, "tell"> & { readonly events: Pick<Store["events"], "heldExecutions"> };
  readonly routes: Pick<Routes, "hold">;
  readonly log: Log;
}

export interface Holding {
  /** What a node reports, and the records of what it reports: events and routes follow. */
  heard(report: Pick<Heartbeat, "node" | "executions">, records: readonly SandboxRecord[]): Promise<void>;
}

export function createHolding({ store, routes, log }: HoldingDeps): Holding {
  /** Held executions by node. Of a node that is heard for the first time the events say what was told. */
  const held = new Map<string, Set<string>>();

  return {
    async heard({ node: { nodeId }, executions }, records) {
      const before =
        held.get(nodeId) ??
        new Set(await store.events.heldExecutions(executions.map(({ executionId }) => executionId)));
      const current = new Map(records.map((record) => [record.executionId, record]));
      const after = new Set<string>();
      held.set(nodeId, after);
      for (const execution of executions) {
        const { executionId, sandboxId } = execution;
        const is = execution.held === true;
        const was = before.has(executionId);
        const record = current.get(executionId);
        if (record === undefined || record.nodeId !== nodeId) continue;
        if (is) after.add(executionId);
        // Also where nothing has changed: a route that was made anew knows nothing of it.
        if (is || was) routes.hold(sandboxId, executionId, is);
        if (is === was) continue;
        log.warn(
          { nodeId, sandboxId, executionId },
          is ? "sandbox held: its node's disk is short" : "sandbox released",
        );
        await store.tell(record, { type: is ? "held" : "released", data: { reason: "disk" } });
      }
    },
  };
}

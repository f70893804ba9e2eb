/** Sandboxes that their node froze because its disk is full: writes an event per hold and release, updates routes. */

import type { Heartbeat } from "../../shared/agent-api/routes.ts";
import type { Log } from "../../shared/program/log.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Store } from "../store/store.ts";

export interface HoldingDeps {
  readonly store: Pick<Store, "held" | "setHeld">;
  readonly routes: Pick<RoutingTable, "hold">;
  readonly log: Log;
}

export interface Holding {
  /** Compares a node's report with the records: writes events and updates routes. */
  heard(report: Pick<Heartbeat, "node" | "executions">, records: readonly SandboxRecord[]): Promise<void>;
}

export function createHolding({ store, routes, log }: HoldingDeps): Holding {
  return {
    async heard({ node: { nodeId }, executions }, records) {
      const before = await store.held.onNode(nodeId);
      const current = new Map(records.map((record) => [record.executionId, record]));
      for (const execution of executions) {
        const { executionId, sandboxId } = execution;
        const is = execution.held === true;
        const was = before.has(executionId);
        const record = current.get(executionId);
        if (record === undefined || record.nodeId !== nodeId) continue;
        // Also when nothing changed: a route that was added since does not have the hold.
        if (is || was) routes.hold(sandboxId, executionId, is);
        if (is === was || !(await store.setHeld(record, is))) continue;
        log.warn(
          { nodeId, sandboxId, executionId },
          is ? "sandbox held: its node's disk is short" : "sandbox released",
        );
      }
      const reported = new Set(executions.map(({ executionId }) => executionId));
      await store.held.forget([...before].filter((executionId) => !reported.has(executionId)));
    },
  };
}

/** Sandboxes that their node froze because its disk is full: writes an event per hold and release, updates routes. */

import type { Heartbeat } from "../../shared/agent-api/routes.ts";
import type { Log } from "../../shared/program/log.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Store } from "../store/store.ts";

export interface HoldingDeps {
  readonly store: Pick<Store, "addEvent"> & { readonly events: Pick<Store["events"], "heldExecutions"> };
  readonly routes: RoutingTable;
  readonly log: Log;
}

export interface Holding {
  /** Compares a node's report with the records: writes events and updates routes. */
  heard(report: Pick<Heartbeat, "node" | "executions">, records: readonly SandboxRecord[]): Promise<void>;
}

export function createHolding({ store, routes, log }: HoldingDeps): Holding {
  /** Held executions by node. For a node's first report, stored events say what was already written. */
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
        // Also when nothing changed: a route that was added since does not have the hold.
        if (is || was) routes.hold(sandboxId, executionId, is);
        if (is === was) continue;
        log.warn(
          { nodeId, sandboxId, executionId },
          is ? "sandbox held: its node's disk is short" : "sandbox released",
        );
        await store.addEvent(record, { type: is ? "held" : "released", data: { reason: "disk" } });
      }
    },
  };
}

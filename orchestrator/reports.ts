/** Handlers of what nodes report: heartbeats, with their reconciliation, and exits. */

import type { ExitReport, nodeApi } from "../shared/agent-api.ts";
import type { Handlers } from "../shared/contract.ts";
import type { Log } from "../shared/log.ts";
import type { Ending, EndReason } from "./ending.ts";
import type { Nodes } from "./nodes.ts";
import type { Pools } from "./pools.ts";
import { type Grace, noSuspicions, reconcile, type Suspicions } from "./reconcile.ts";
import type { Routes } from "./routes.ts";
import type { SandboxRecord } from "./store/sandbox-record.ts";
import type { SandboxStore } from "./store/sandboxes.ts";

export interface ReportsDeps {
  readonly store: Pick<SandboxStore, "onNode" | "getMany">;
  readonly nodes: Nodes;
  readonly routes: Routes;
  readonly ending: Pick<Ending, "ended">;
  readonly pools: Pools;
  readonly grace: Grace;
  readonly now: () => number;
  readonly log: Log;
  /** For the metrics. */
  observe(repair: "stop" | "lost" | "end_at", count: number): void;
}

export function createReportHandlers(deps: ReportsDeps): Handlers<typeof nodeApi> {
  const suspicions = new Map<string, Suspicions>();

  async function handleExits(exits: readonly ExitReport[]): Promise<void> {
    await Promise.all(exits.map((exit) => deps.ending.ended(exit, reasonOf(exit))));
  }

  /** Live records of the node and those of everything it reported; a failed read fails the report, and repairs nothing. */
  async function recordsFor(nodeId: string, reported: readonly string[]): Promise<SandboxRecord[]> {
    const mine = await deps.store.onNode(nodeId);
    const known = new Set(mine.map(({ id }) => id));
    const others = await deps.store.getMany(reported.filter((id) => !known.has(id)));
    return [...mine, ...others];
  }

  return {
    async heartbeat({ body }) {
      const { nodeId } = body.node;
      if (await deps.nodes.heard(body)) deps.routes.refreshNode(nodeId);
      await handleExits(body.exits);
      const reported = body.executions;
      const records = await recordsFor(
        nodeId,
        reported.map(({ sandboxId }) => sandboxId),
      );
      const before = suspicions.get(nodeId) ?? noSuspicions;
      const plan = reconcile({ nodeId, reported, records }, before, deps.grace, deps.now());
      suspicions.set(nodeId, plan.suspicions);
      for (const record of plan.lost) {
        deps.log.warn({ nodeId, sandboxId: record.id, executionId: record.executionId }, "sandbox lost on its node");
        await deps.ending.ended({ sandboxId: record.id, executionId: record.executionId }, "lost");
      }
      if (plan.stop.length > 0) deps.log.warn({ nodeId, executions: plan.stop }, "node told to stop executions");
      deps.observe("stop", plan.stop.length);
      deps.observe("lost", plan.lost.length);
      deps.observe("end_at", Object.keys(plan.endAt).length);
      const ready = deps.nodes.list().filter(({ status }) => status === "ready").length;
      return { pools: deps.pools.targets(ready), stop: [...plan.stop], endAt: { ...plan.endAt }, deleteSnapshots: [] };
    },

    reportExits: ({ body }) => handleExits(body.exits),
  };
}

function reasonOf({ reason }: ExitReport): EndReason {
  return reason === "expired" ? "timeout" : reason;
}

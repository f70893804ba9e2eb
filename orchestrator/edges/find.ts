/** Where a sandbox is, as the records say it, for edges whose node does not have it any more. Resumes nothing. */

import type { FindSandbox, Whereabouts } from "../edge/sandbox-lookup.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Store } from "../store/store.ts";

/** The states of a sandbox that a drain takes to another node. */
const BETWEEN: ReadonlySet<SandboxRecord["state"]> = new Set(["pausing", "paused", "starting"]);

interface FindStore {
  readonly sandboxes: Pick<Store["sandboxes"], "get">;
  readonly drains: Pick<Store["drains"], "isMoving">;
}

/** A sandbox that runs has a route when the promise resolves. */
export function findSandbox(
  { sandboxes, drains }: FindStore,
  routes: Pick<RoutingTable, "add" | "lookup">,
): FindSandbox {
  return async (sandboxId) => {
    const record = await sandboxes.get(sandboxId);
    if (record === undefined || !BETWEEN.has(record.state)) return whereabouts(record, routes);
    if (await drains.isMoving(sandboxId)) return { is: "paused", moving: true };
    // It may have arrived between the two questions.
    return whereabouts(await sandboxes.get(sandboxId), routes);
  };
}

function whereabouts(record: SandboxRecord | undefined, routes: Pick<RoutingTable, "add" | "lookup">): Whereabouts {
  switch (record?.state) {
    case undefined:
    case "gone":
    case "killing":
      return { is: "not_found" };
    case "pausing":
    case "paused":
      return { is: "paused", moving: false };
    case "starting":
    case "rewinding":
      return { is: "transitioning" };
    case "running":
    case "snapshotting": {
      // Another orchestrator may have started it, and its route is not known here yet.
      if (routes.lookup(record.id)?.executionId !== record.executionId) routes.add(record);
      const route = routes.lookup(record.id);
      return route === undefined ? { is: "transitioning" } : { is: "running", route };
    }
  }
}

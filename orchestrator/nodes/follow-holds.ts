/** Marks the routes of sandboxes that their nodes hold, also when another orchestrator has heard of it. */

import type { Feed } from "../store/changes/feed.ts";
import type { HeldStore } from "../store/sandboxes/held.ts";
import type { RoutingTable } from "./routing-table.ts";

interface FollowHoldsDeps {
  readonly feed: Pick<Feed, "on">;
  readonly routes: Pick<RoutingTable, "hold" | "lookup" | "running">;
  readonly held: Pick<HeldStore, "list">;
}

/** Resolves when the routes are marked. Call it after the routes follow the records. */
export async function followHolds({ feed, routes, held }: FollowHoldsDeps): Promise<void> {
  async function follow(sandboxIds?: readonly string[]): Promise<void> {
    const rows = await held.list(sandboxIds);
    const executions = new Set(rows.map(({ executionId }) => executionId));
    const ids = sandboxIds ?? [...routes.running()].map(({ sandboxId }) => sandboxId);
    for (const id of ids) {
      const route = routes.lookup(id);
      if (route !== undefined) routes.hold(id, route.executionId, executions.has(route.executionId));
    }
  }

  feed.on("sandbox", follow);
  await follow();
}

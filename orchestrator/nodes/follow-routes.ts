/** Routes of sandboxes that other orchestrators start, pause and end: the records say what they are. */

import type { Feed } from "../store/changes/feed.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { RoutingTable } from "./routing-table.ts";

interface FollowDeps {
  readonly feed: Pick<Feed, "on">;
  readonly routes: RoutingTable;
  readonly store: {
    getMany(ids: readonly string[]): Promise<readonly SandboxRecord[]>;
    routable(): Promise<readonly SandboxRecord[]>;
  };
}

/** Records that one statement reads. */
const BATCH = 500;

export function followRoutes({ feed, routes, store }: FollowDeps): void {
  async function follow(id: string, record: SandboxRecord | undefined): Promise<void> {
    const route = routes.lookup(id);
    const runs = record?.state === "running" || record?.state === "snapshotting";
    if (runs && route?.executionId === record.executionId) return;
    if (route !== undefined) {
      const gone = record === undefined || record.state === "gone" || record.state === "killing";
      if (gone) await routes.remove(id, route.executionId, "killed");
      else await routes.suspend(id, route.executionId);
    }
    if (runs) routes.add(record);
  }

  async function followAll(): Promise<void> {
    const records = await store.routable();
    const running = new Set(records.map(({ id }) => id));
    for (const { sandboxId } of routes.running()) if (!running.has(sandboxId)) await follow(sandboxId, undefined);
    for (const record of records) await follow(record.id, record);
  }

  feed.on("sandbox", async (ids) => {
    if (ids === undefined) return followAll();
    for (let at = 0; at < ids.length; at += BATCH) {
      const some = ids.slice(at, at + BATCH);
      const records = new Map((await store.getMany(some)).map((record) => [record.id, record]));
      for (const id of some) await follow(id, records.get(id));
    }
  });
}

/** Routes of sandboxes that other orchestrators start, pause and end: the records say what they are. */

import type { EdgeRoute } from "../edge/sandbox-lookup.ts";
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
  /** @param before the route before the record was read. If there is another one now, the record may be older than that. */
  async function follow(id: string, before: EdgeRoute | undefined, record: SandboxRecord | undefined): Promise<void> {
    const route = routes.lookup(id);
    if (route !== before) return again(id);
    const runs = record?.state === "running" || record?.state === "snapshotting";
    if (runs && route?.executionId === record.executionId) return;
    if (route !== undefined) {
      const gone = record === undefined || record.state === "gone" || record.state === "killing";
      if (gone) await routes.remove(id, route.executionId, "killed");
      else await routes.suspend(id, route.executionId);
      // The streams have taken some time to end.
      if (runs) return again(id);
    }
    if (runs) routes.add(record);
  }

  async function again(id: string): Promise<void> {
    const before = routes.lookup(id);
    const [record] = await store.getMany([id]);
    await follow(id, before, record);
  }

  async function followMany(ids: readonly string[]): Promise<void> {
    for (let at = 0; at < ids.length; at += BATCH) {
      const before = new Map(ids.slice(at, at + BATCH).map((id) => [id, routes.lookup(id)]));
      const records = new Map((await store.getMany([...before.keys()])).map((record) => [record.id, record]));
      for (const [id, route] of before) await follow(id, route, records.get(id));
    }
  }

  feed.on("sandbox", async (ids) => {
    if (ids !== undefined) return followMany(ids);
    const known = [...routes.running()].map(({ sandboxId }) => sandboxId);
    const running = (await store.routable()).map((record) => record.id);
    await followMany([...new Set([...known, ...running])]);
  });
}

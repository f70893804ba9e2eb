/**
 * The demand for warm containers where several orchestrators serve one database: each counts the starts of all of them, and
 * hears which builds came and went at the others. So a node gets the same targets from whichever of them it reports to.
 */

import { LRUCache } from "lru-cache";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { Background } from "../base/background.ts";
import type { Build } from "../store/builds/record.ts";
import type { Feed } from "../store/changes/feed.ts";
import type { Store } from "../store/store.ts";
import { canBePooled, MEMORY_MS, type Pools } from "./pool-targets.ts";

interface SharedDemandDeps {
  /** Those of this process alone. */
  readonly own: Pools;
  readonly store: Pick<Store, "tellOthers"> & {
    readonly events: Pick<Store["events"], "newest" | "created">;
    readonly templates: Pick<Store["templates"], "build" | "promotedBuilds" | "tagsOf">;
  };
  readonly feed: Pick<Feed, "on">;
  readonly background: Background;
  readonly now: () => number;
  readonly log: Log;
}

/** Time between two looks at the starts of sandboxes: much less than nodes take to fill a pool. */
const EVERY_MS = 2_000;
/** Builds whose facts are remembered, and starts that one look reads. */
const MANY = 1_000;

/** Starts to look. The pools that it returns are the ones to change. */
export function shareDemand({ own, store, feed, background, now, log }: SharedDemandDeps) {
  const builds = new LRUCache<string, Build>({ max: MANY });
  let seen: number | undefined;

  async function buildOf(id: string): Promise<Build | undefined> {
    const build = builds.get(id) ?? (await store.templates.build(id));
    if (build !== undefined) builds.set(id, build);
    return build;
  }

  async function countStarts(): Promise<void> {
    const until = await store.events.newest();
    const oldest = now() - MEMORY_MS;
    for (const { buildId, at } of await store.events.created({ after: seen, until, most: MANY })) {
      if (at < oldest) continue;
      const build = await buildOf(buildId);
      if (build !== undefined && canBePooled(build)) own.used(build, at);
    }
    seen = until;
  }

  /** What another orchestrator has done with a build, as the database shows it. */
  async function follow(id: string): Promise<void> {
    builds.delete(id);
    const build = await store.templates.build(id);
    if (build === undefined) return own.gone([id]);
    if ((await store.templates.promotedBuilds()).some((each) => each.id === id)) own.keep(build);
    const former: string[] = [];
    for (const other of own.builds()) {
      if (other.id === id || other.templateId !== build.templateId) continue;
      if ((await store.templates.tagsOf(other.id)).length === 0) former.push(other.id);
    }
    own.replaced(former, build);
  }

  feed.on("build", async (ids) => {
    for (const id of ids ?? own.builds().map((build) => build.id)) await follow(id);
  });

  const tell = (ids: readonly string[]) =>
    background.run("tell other orchestrators of a build", () => store.tellOthers("build", ids));
  const pools: Pools = {
    ...own,
    // Its event says so, to this process too.
    used: () => undefined,
    keep(build) {
      own.keep(build);
      tell([build.id]);
    },
    replaced(formerIds, build) {
      own.replaced(formerIds, build);
      tell([build.id]);
    },
    gone(buildIds) {
      own.gone(buildIds);
      tell(buildIds);
    },
  };
  const looking = loop({ name: "starts of sandboxes", everyMs: EVERY_MS, log }, countStarts);
  return { pools, stop: () => looking.stop() };
}

/**
 * The demand for warm containers where several orchestrators serve one database: each counts the starts of all of them, and
 * hears which builds came and went at the others. So a node gets the same targets from whichever of them it reports to.
 */

import { LRUCache } from "lru-cache";
import type { Log } from "../../../shared/program/log.ts";
import { loop } from "../../../shared/program/loop.ts";
import type { Background } from "../../base/background.ts";
import type { Build } from "../../store/builds/record.ts";
import type { Feed } from "../../store/changes/feed.ts";
import type { Store } from "../../store/store.ts";
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
/** Builds whose facts are remembered. */
const MANY = 1_000;
/** Starts that one look reads, the newest ones. */
const MOST_STARTS = 10_000;

/** What the events tell about starts: of the last hour after the start of a process, then of what has come since. */
function startCounting({ own, store, now }: Pick<SharedDemandDeps, "own" | "store" | "now">) {
  const builds = new LRUCache<string, Build>({ max: MANY });
  let seen: number | undefined;

  async function buildOf(id: string): Promise<Build | undefined> {
    const build = builds.get(id) ?? (await store.templates.build(id));
    if (build !== undefined) builds.set(id, build);
    return build;
  }

  return {
    forget: (id: string) => void builds.delete(id),
    async count(): Promise<void> {
      const until = await store.events.newest();
      const oldest = now() - MEMORY_MS;
      // Events are numbered by their time, in microseconds.
      const after = seen ?? Math.min(until, oldest * 1000);
      for (const { buildId, at } of await store.events.created({ after, until, most: MOST_STARTS })) {
        if (at < oldest) continue;
        const build = await buildOf(buildId);
        if (build !== undefined && canBePooled(build)) own.used(build, at);
      }
      seen = until;
    },
  };
}

/** Counts the starts of the last hour, which an earlier process has seen. Call it before this one starts sandboxes. */
export async function rememberDemand(deps: Pick<SharedDemandDeps, "own" | "store" | "now">): Promise<void> {
  await startCounting(deps).count();
}

/** Starts to look. The pools that it returns are the ones to change. */
export function shareDemand({ own, store, feed, background, now, log }: SharedDemandDeps) {
  const starts = startCounting({ own, store, now });

  /** What another orchestrator has done with a build, as the database shows it. */
  async function follow(id: string): Promise<void> {
    starts.forget(id);
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
  const looking = loop({ name: "starts of sandboxes", everyMs: EVERY_MS, log }, () => starts.count());
  return { pools, stop: () => looking.stop() };
}

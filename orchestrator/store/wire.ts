/** Opens the store and makes sure that it has the base template. */

import { defined } from "../../shared/defined.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { KeyedSeal } from "../../shared/program/sealing/seal.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { CHANNEL, changeLog } from "./changes/changes.ts";
import { createFeed, type Feed, quietFeed } from "./changes/feed.ts";
import { createCondition } from "./condition.ts";
import { type OpenedDatabase, openDatabase } from "./database.ts";
import { createLineage } from "./lineage.ts";
import { allLeases, roundsWith } from "./membership/leases.ts";
import { joinMembers, type Membership } from "./membership/membership.ts";
import type { SharedKeys } from "./membership/same-keys.ts";
import { whenReached } from "./postgres/first-connection.ts";
import { createStore, type Store } from "./store.ts";

/** A crash of the machine may lose what a node did for requests of so long a time: it holds that instead of deleting it. */
const MARK_MS = 5_000;
/** Time between two deletions of changes that everybody has read. */
const FORGET_MS = 600_000;

export interface OpenStoreDeps {
  /** As `openDatabase` takes it. */
  readonly place: string;
  readonly baseTemplate: Parameters<Store["templates"]["seed"]>[1];
  readonly sealing: KeyedSeal;
  readonly now: () => number;
  readonly log: Log;
  readonly version: string;
  /** What every orchestrator of the database must have. */
  readonly keys: SharedKeys;
  /** How long an orchestrator may be silent before others do its work. */
  readonly leaseMs: number;
  /** Called with what must be added to this machine's clock, so that it is the database's. */
  readonly onDifference: (ms: number) => void;
}

export async function startStore(
  { place, baseTemplate, sealing, now, log, ...membership }: OpenStoreDeps,
  teardown: Teardown,
) {
  const opened = await whenReached(() => openDatabase(place, log), { log });
  teardown.add("database", () => opened.close());
  const members = opened.sqlite ? undefined : await joinMembers(opened.database, { ...membership, now, log });
  if (members !== undefined) teardown.add("membership", () => members.stop());
  const condition = createCondition(opened.ballast, log);
  const store = createStore(opened.database, now, sealing, { condition, ...defined({ members }) });
  const feed = await openFeed(opened, { members, log, teardown });
  await store.workspaces.seed();
  const template = await store.templates.seed("base", baseTemplate);
  const lineage = await createLineage(opened.database, {
    now,
    sqlite: opened.sqlite,
    ...defined({ memberId: members?.id }),
  });
  const marking = loop({ name: "marks of the database", everyMs: MARK_MS, log }, () =>
    condition.check(() => lineage.advance()),
  );
  teardown.add("marks of the database", () => marking.stop());
  // A SQLite file has one process, which does all rounds.
  const leases = members ?? allLeases;
  return {
    lineage,
    store,
    template,
    schema: opened.schema,
    ping: () => opened.ping(),
    condition,
    alone: opened.sqlite,
    feed,
    leases,
    rounds: members === undefined ? loop : roundsWith(members),
  };
}

interface FeedDeps {
  readonly members: Membership | undefined;
  readonly log: Log;
  readonly teardown: Teardown;
}

/** Of a SQLite file nothing is read. */
async function openFeed({ database, listen }: OpenedDatabase, { members, log, teardown }: FeedDeps): Promise<Feed> {
  if (members === undefined || listen === undefined) return quietFeed;
  const changes = changeLog(database, () => members.self);
  const forgetting = roundsWith(members)({ name: "old changes", everyMs: FORGET_MS, log }, () => changes.forget());
  teardown.add("old changes", () => forgetting.stop());
  return createFeed({ changes, log, listen: (told) => listen({ ...told, channel: CHANNEL, log }) });
}

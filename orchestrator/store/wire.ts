/** Opens the store and makes sure that it has the base template. */

import { defined } from "../../shared/defined.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { KeyedSeal } from "../../shared/program/seal.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { createCondition } from "./condition.ts";
import { openDatabase } from "./database.ts";
import { createLineage } from "./lineage.ts";
import { allLeases, roundsWith } from "./membership/leases.ts";
import { joinMembers } from "./membership/membership.ts";
import { createStore, type Store } from "./store.ts";

/** A crash of the machine may lose what a node did for requests of so long a time: it holds that instead of deleting it. */
const MARK_MS = 5_000;

export interface OpenStoreDeps {
  /** As `openDatabase` takes it. */
  readonly place: string;
  readonly baseTemplate: Parameters<Store["templates"]["seed"]>[1];
  readonly sealing: KeyedSeal;
  readonly now: () => number;
  readonly log: Log;
  readonly version: string;
  /** How long an orchestrator may be silent before others do its work. */
  readonly leaseMs: number;
  /** Called with what must be added to this machine's clock, so that it is the database's. */
  readonly onDifference: (ms: number) => void;
}

export async function startStore(
  { place, baseTemplate, sealing, now, log, ...membership }: OpenStoreDeps,
  teardown: Teardown,
) {
  const opened = await openDatabase(place);
  teardown.add("database", () => opened.close());
  const members = opened.sqlite ? undefined : await joinMembers(opened.database, { ...membership, now, log });
  if (members !== undefined) teardown.add("membership", () => members.stop());
  const condition = createCondition(opened.ballast, log);
  const store = createStore(opened.database, now, sealing, { condition, ...defined({ members }) });
  await store.workspaces.seed();
  const template = await store.templates.seed("base", baseTemplate);
  const lineage = await createLineage(opened.database, { now, sqlite: opened.sqlite });
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
    sqlite: opened.sqlite,
    leases,
    rounds: members === undefined ? loop : roundsWith(members),
  };
}

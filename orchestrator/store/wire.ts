/** Opens the store and makes sure that it has the base template. */

import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { KeyedSeal } from "../../shared/program/seal.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { createCondition } from "./condition.ts";
import { openDatabase } from "./database.ts";
import { createLineage } from "./lineage.ts";
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
}

export async function startStore({ place, baseTemplate, sealing, now, log }: OpenStoreDeps, teardown: Teardown) {
  const opened = await openDatabase(place);
  teardown.add("database", () => opened.close());
  const condition = createCondition(opened.ballast, log);
  const store = createStore(opened.database, now, sealing, condition);
  await store.workspaces.seed();
  const template = await store.templates.seed("base", baseTemplate);
  const lineage = await createLineage(opened.database, { now, sqlite: opened.sqlite });
  const marking = loop({ name: "marks of the database", everyMs: MARK_MS, log }, () =>
    condition.check(() => lineage.advance()),
  );
  teardown.add("marks of the database", () => marking.stop());
  return { lineage, store, template, schema: opened.schema, ping: () => opened.ping(), condition };
}

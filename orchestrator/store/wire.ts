/** Opens the store and makes sure that it has the base template. */

import type { KeyedSeal } from "../../shared/program/seal.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { openDatabase } from "./database.ts";
import { createStore, type Store } from "./store.ts";

export interface OpenStoreDeps {
  /** As `openDatabase` takes it. */
  readonly place: string;
  readonly baseTemplate: Parameters<Store["templates"]["seed"]>[1];
  readonly sealing: KeyedSeal;
  readonly now: () => number;
}

export async function openStore({ place, baseTemplate, sealing, now }: OpenStoreDeps, teardown: Teardown) {
  const opened = await openDatabase(place, sealing);
  teardown.add("database", () => opened.close());
  const store = createStore(opened.database, now, sealing);
  await store.workspaces.seed();
  const template = await store.templates.seed("base", baseTemplate);
  return { store, template, schema: opened.schema, ping: () => opened.ping() };
}

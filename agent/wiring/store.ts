/** Takes the state directory for this agent alone, and opens its database. */

import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { Teardown } from "../../shared/program/teardown.ts";
import { lockState } from "../store/lock.ts";
import { noteNewDatabase } from "../store/new-database.ts";
import type { NodeSeal } from "../store/seal-key.ts";
import { openStores, type Stores } from "../store/stores.ts";

export interface OpenStateDeps {
  readonly lockPath: string;
  readonly databasePath: string;
  readonly sealing: () => NodeSeal;
  /** Makes room for the database on a full disk. */
  readonly keepBallast: (now: "now") => Promise<void>;
}

/** @throws when another agent uses the state directory */
export async function openState(
  { lockPath, databasePath, sealing, keepBallast }: OpenStateDeps,
  teardown: Teardown,
): Promise<Stores> {
  await mkdir(dirname(databasePath), { recursive: true, mode: 0o700 });
  await keepBallast("now");
  const lock = lockState(lockPath);
  teardown.add("lock", () => lock.release());
  await noteNewDatabase(databasePath);
  const stores = openStores(databasePath, sealing());
  teardown.add("store", () => stores.close());
  return stores;
}

/** The agent's state directory: taken for this agent alone, and its database opened. */

import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Teardown } from "../../shared/program/teardown.ts";
import { lockState } from "./database/lock.ts";
import { noteNewDatabase } from "./database/new-database.ts";
import { type NodeSeal, openNodeSeal } from "./database/seal-key.ts";
import { openStores, type Stores } from "./stores.ts";

export interface State {
  readonly lockPath: string;
  readonly databasePath: string;
  /** Seals secrets in the database; makes its key when there is none. */
  readonly sealing: () => NodeSeal;
}

interface StateSettings {
  readonly stateDir: string;
  readonly sealKeyFile?: string | undefined;
}

export function hostState({ stateDir, sealKeyFile }: StateSettings): State {
  return {
    lockPath: join(stateDir, "agent.lock"),
    databasePath: join(stateDir, "agent.db"),
    sealing: () => openNodeSeal(sealKeyFile ?? join(stateDir, "seal.key")),
  };
}

/**
 * @param makeRoom makes room for the database on a full disk
 * @throws when another agent uses the state directory
 */
export async function openState(
  { lockPath, databasePath, sealing }: State,
  makeRoom: () => Promise<void>,
  teardown: Teardown,
): Promise<Stores> {
  await mkdir(dirname(databasePath), { recursive: true, mode: 0o700 });
  await makeRoom();
  const lock = lockState(lockPath);
  teardown.add("lock", () => lock.release());
  await noteNewDatabase(databasePath);
  const stores = openStores(databasePath, sealing());
  teardown.add("store", () => stores.close());
  return stores;
}

/**
 * Remembers in a file beside the database that it had to be made, until the agent has recorded in it what an earlier one left
 * on the node: an agent that is killed between the two must not take the empty database for the whole truth.
 */

import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";

const IN_MEMORY = ":memory:";
const marker = (databasePath: string) => `${databasePath}-new`;

/** Call before the database is opened. */
export async function noteNewDatabase(databasePath: string): Promise<void> {
  if (databasePath !== IN_MEMORY && !existsSync(databasePath))
    await writeFile(marker(databasePath), "", { flush: true });
}

export function isNewDatabase(databasePath: string): boolean {
  return existsSync(marker(databasePath));
}

export async function settleNewDatabase(databasePath: string): Promise<void> {
  await rm(marker(databasePath), { force: true });
}

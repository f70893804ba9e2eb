/** Migration 0005: network options are sealed. */

import { type Kysely, type Migration, sql } from "kysely";
import { isSealed, type Seal } from "../../../shared/program/seal.ts";

/** Seals them in the context in which `store/sandboxes/record.ts` opens them. */
export function sealNetworks(sealing: Seal): Migration {
  return {
    async up(db: Kysely<unknown>) {
      const clear = sql<{ id: string; network: string }>`select id, network from sandboxes where network is not null`;
      for (const { id, network } of (await clear.execute(db)).rows) {
        if (isSealed(network)) continue;
        await sql`update sandboxes set network = ${sealing.close(network, `${id} network`)} where id = ${id}`.execute(
          db,
        );
      }
    },
  };
}

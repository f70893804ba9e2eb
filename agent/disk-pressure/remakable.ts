/** What the node can make again, or does not need, and therefore drops while its disk is short. */

import type { BuildParts } from "../builds/start-builds.ts";
import type { DropSources } from "../node-disk/dropping.ts";
import type { Disposal } from "../sandboxes/disposal.ts";
import type { Pool } from "../sandboxes/pool/pool.ts";
import type { SnapshotParts } from "../snapshots/start-snapshots.ts";

export interface RemakableParts {
  readonly pool: Pool;
  readonly stored: SnapshotParts;
  readonly building: BuildParts;
  readonly disposal: Disposal;
}

export function remakableOf({ pool, stored, building, disposal }: RemakableParts): DropSources {
  const { holding, frozen } = stored;
  const { cache } = building;
  const drops = {
    held: (id: string) => holding.drop(id, "the node's disk is short"),
    pool: (id: string) => pool.drop(id),
    frozen: (id: string) => frozen.dropStored(id),
    layers: (id: string) => cache.drop(id),
  };
  return {
    there: () => ({
      held: holding.list(),
      pool: pool.containers(),
      frozen: frozen.kept(),
      layers: cache.layers(),
    }),
    drop: (of, id) => drops[of](id),
    settled: () => disposal.settled(),
  };
}

/** Answers the orchestrator what `--garbage` lists: stored memory and images that no record of this node references. */

import type { Garbage } from "../../shared/agent-api/routes.ts";
import { defined } from "../../shared/defined.ts";
import { type BuildGarbageDeps, findBuildGarbage } from "../builds/images/garbage.ts";
import { findGarbage, type GarbageDeps } from "../snapshots/store/garbage.ts";

export async function listGarbage(deps: GarbageDeps & BuildGarbageDeps): Promise<Garbage> {
  const [{ spent, directories, images }, { names, layers }] = await Promise.all([
    findGarbage(deps),
    findBuildGarbage(deps),
  ]);
  const sizes = new Map(deps.stores.snapshots.all().map(({ id, memoryBytes }) => [id, memoryBytes]));
  return {
    memory: [...spent, ...directories].map((snapshotId) => {
      const bytes = sizes.get(snapshotId);
      return { snapshotId, ...defined({ bytes }) };
    }),
    images: images.map(({ id, snapshotId }) => ({ image: id, snapshotId })),
    buildImages: [...names],
    layers: layers.map(({ image, bytes }) => ({ image, bytes })),
  };
}

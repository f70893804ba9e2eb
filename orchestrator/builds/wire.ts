/** Constructs the parts that build templates: archives of uploaded files, the queue, clean-up, and their handlers. */

import { dirname, join } from "node:path";
import type { Base } from "../base/base.ts";
import type { OrchestratorConfig } from "../config.ts";
import type { Images } from "../lifecycle/start/images.ts";
import type { Metrics } from "../metrics/prometheus.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Pools } from "../nodes/pools/pool-targets.ts";
import type { Lineage } from "../store/lineage.ts";
import type { Store } from "../store/store.ts";
import type { TemplateNames } from "../templates/names.ts";
import { startBuildCleaning } from "./cleanup.ts";
import { createBuildHandlers } from "./handlers.ts";
import { startBuildQueue } from "./queue.ts";
import { createBuildRequestHandlers } from "./request-handlers.ts";
import { createArchives } from "./uploads/archives.ts";

const MIB = 1024 * 1024;

interface StartBuildsDeps {
  readonly store: Store;
  readonly lineage: Pick<Lineage, "beside">;
  readonly nodes: Nodes;
  readonly images: Images;
  readonly pools: Pools;
  readonly names: TemplateNames;
  readonly metrics: Metrics;
}

export async function startBuilds(base: Base, deps: StartBuildsDeps) {
  const { store, lineage, nodes, images, pools, names, metrics } = deps;
  const { config, seeds, now, teardown, alone } = base;
  const archives = createArchives(filesDirectory(config));
  // Uploads that were under way when the only process ended do not continue. Another one may have some in the same folder.
  if (alone) await archives.sweepUnfinished(now());

  const cleaning = startBuildCleaning({ base, store, nodes, archives, pools });
  teardown.add("build cleaning", () => cleaning.stop());
  const queue = startBuildQueue({ base, store, nodes, images, pools, metrics, cleaning });
  teardown.add("builds", () => queue.stop());
  return {
    queue,
    cleaning,
    archives,
    handlers: {
      ...createBuildRequestHandlers({ base, store, names, archives }),
      ...createBuildHandlers({
        base,
        store,
        names,
        archives,
        queue,
        hasOthers: async () => (await lineage.beside()).length > 0,
      }),
    },
    files: {
      archives,
      now,
      seeds: seeds.all,
      maxBytes: config.maxUploadMb * MIB,
      isBuilding: (place: { nodeId: string; templateId: string; hash: string }) =>
        store.buildLeftovers.readsFile(place),
      isTemplate: async (id: string) => (await store.templates.get(id)) !== undefined,
    },
  };
}

function filesDirectory({ filesDirectory, database }: OrchestratorConfig): string {
  return filesDirectory ?? join(dirname(database), "files");
}

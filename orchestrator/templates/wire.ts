/** Constructs the parts that name templates, count their uses, and serve templates and tags. */

import type { Base } from "../app-parts.ts";
import type { BuildQueue } from "../builds/queue.ts";
import type { Archives } from "../builds/uploads/archives.ts";
import type { Pools } from "../nodes/warm-pools.ts";
import type { Checkpointing } from "../sandboxes/lifecycle/checkpoint.ts";
import type { SnapshotRemover } from "../snapshots/removal.ts";
import type { Store } from "../store/store.ts";
import { createTemplateChangeHandlers } from "./changes.ts";
import { createTemplateHandlers } from "./handlers.ts";
import { createTemplateNames } from "./names.ts";
import { createTagHandlers } from "./tags.ts";
import { createSpawns } from "./usage.ts";

interface TemplateHandlersDeps {
  readonly checkpointing: Pick<Checkpointing, "discard">;
  readonly snapshots: SnapshotRemover;
  readonly pools: Pick<Pools, "gone">;
  readonly archives: Pick<Archives, "removeTemplate">;
  readonly builds: Pick<BuildQueue, "forget">;
}

export function startTemplates({ teardown }: Base, store: Store) {
  const names = createTemplateNames(store.templates);
  const spawns = createSpawns((id, count) => store.templates.countSpawns(id, count));
  teardown.add("spawn counts", () => spawns.flush());
  return {
    names,
    spawns,
    handlers: (served: TemplateHandlersDeps) => ({
      templates: createTemplateHandlers({ templates: store.templates, names }),
      templateChanges: createTemplateChangeHandlers({ ...served, store, names }),
      tags: createTagHandlers({ store, names }),
    }),
  };
}

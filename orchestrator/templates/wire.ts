/** Constructs the parts that name templates, count their uses, and serve templates and tags. */

import type { Base } from "../base/base.ts";
import type { Lifecycle } from "../lifecycle/wire.ts";
import type { Pools } from "../nodes/pools/pool-targets.ts";
import type { Store } from "../store/store.ts";
import { createTemplateChangeHandlers } from "./changes.ts";
import { createTemplateHandlers } from "./handlers.ts";
import { createTemplateNames, type TemplateNames } from "./names.ts";
import { createTemplateRemoval, type TemplateRemovalDeps } from "./removal.ts";
import { createTagHandlers } from "./tags.ts";
import { createSpawns } from "./usage.ts";

/** Names and counts, which need nothing but the store. */
export function createTemplates({ teardown }: Base, store: Store) {
  const names = createTemplateNames(store.templates);
  const spawns = createSpawns((id, count) => store.templates.countSpawns(id, count));
  teardown.add("spawn counts", () => spawns.flush());
  return { names, spawns };
}

interface TemplateHandlersDeps {
  readonly store: Store;
  readonly names: TemplateNames;
  readonly lifecycle: Lifecycle;
  readonly pools: Pools;
  readonly archives: TemplateRemovalDeps["archives"];
  readonly builds: TemplateRemovalDeps["builds"];
}

/** What removes templates, and the handlers. */
export function createTemplateHandling({ store, names, lifecycle, pools, archives, builds }: TemplateHandlersDeps) {
  const { snapshots, checkpointing } = lifecycle;
  const removal = createTemplateRemoval({ store, snapshots, archives, pools, builds });
  return {
    removal,
    handlers: {
      templates: createTemplateHandlers({ templates: store.templates, names }),
      templateChanges: createTemplateChangeHandlers({ store, names, checkpointing, removal }),
      tags: createTagHandlers({ store, names }),
    },
  };
}

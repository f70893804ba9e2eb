/** Constructs the parts that name templates, count their uses, and serve templates and tags. */

import type { Base } from "../base/base.ts";
import type { Checkpointing } from "../lifecycle/snapshots/checkpoint.ts";
import type { Store } from "../store/store.ts";
import { createTemplateChangeHandlers } from "./changes.ts";
import { createTemplateHandlers } from "./handlers.ts";
import { createTemplateNames } from "./names.ts";
import { createTemplateRemoval, type TemplateRemoval, type TemplateRemovalDeps } from "./removal.ts";
import { createTagHandlers } from "./tags.ts";
import { createSpawns } from "./usage.ts";

interface TemplateHandlersDeps {
  readonly checkpointing: Pick<Checkpointing, "discard">;
  readonly removal: TemplateRemoval;
}

export function startTemplates({ teardown }: Base, store: Store) {
  const names = createTemplateNames(store.templates);
  const spawns = createSpawns((id, count) => store.templates.countSpawns(id, count));
  teardown.add("spawn counts", () => spawns.flush());
  return {
    names,
    spawns,
    removal: (used: Omit<TemplateRemovalDeps, "store">) => createTemplateRemoval({ ...used, store }),
    handlers: (served: TemplateHandlersDeps) => ({
      templates: createTemplateHandlers({ templates: store.templates, names }),
      templateChanges: createTemplateChangeHandlers({ ...served, store, names }),
      tags: createTagHandlers({ store, names }),
    }),
  };
}

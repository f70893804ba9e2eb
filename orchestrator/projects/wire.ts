/** Constructs the limits of projects and their refusals, and later, when the lifecycles exist, the deletion and the handlers. */

import type { Identity } from "../api/key-cache.ts";
import type { Base } from "../app-parts.ts";
import type { BuildQueue } from "../builds/queue.ts";
import type { Ending } from "../sandboxes/lifecycle/kill.ts";
import type { Store } from "../store/store.ts";
import type { TemplateRemoval } from "../templates/removal.ts";
import { createAllSandboxesHandlers } from "./all-sandboxes.ts";
import { type ProjectPart, startProjectDeleting } from "./deletion.ts";
import { createProjectHandlers } from "./handlers.ts";
import { createLimits } from "./limits.ts";
import { createRefusals } from "./refusals.ts";
import { parseRegions } from "./regions.ts";
import { createWorkspaceHandlers } from "./workspaces.ts";

interface StartProjectsDeps {
  readonly ending: Pick<Ending, "kill">;
  readonly builds: Pick<BuildQueue, "cancelAll">;
  readonly templates: TemplateRemoval;
  readonly identity: Pick<Identity, "forgetProject">;
  /** What other folders keep for projects. */
  readonly parts: readonly ProjectPart[];
}

export function createProjects({ config, now, log, teardown }: Base, store: Store) {
  const contact = config.supportContact;
  const limits = createLimits(config);
  const refusals = createRefusals({ store, now, contact });
  return {
    limits,
    refusals,
    /** Continues the deletions that a former process began. */
    start: (used: StartProjectsDeps) => {
      const deleting = startProjectDeleting({ ...used, store, log, everyMs: config.reconcileEveryMs });
      teardown.add("project deletion", () => deleting.stop());
      const projects = createProjectHandlers({
        ...used,
        store,
        limits,
        deleting,
        contact,
        regions: parseRegions(config.regions),
      });
      return {
        projects: projects.own,
        projectsAdmin: projects.admin,
        workspaces: createWorkspaceHandlers(store.workspaces),
        allSandboxes: createAllSandboxesHandlers({ store, now }),
      };
    },
  };
}

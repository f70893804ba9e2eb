/** Constructs the handlers of projects and their deletion, which continues the deletions that a former process began. */

import type { Callers } from "../access/wire.ts";
import type { Base } from "../base/base.ts";
import type { BuildQueue } from "../builds/queue.ts";
import type { Ending } from "../lifecycle/ending/kill.ts";
import type { Store } from "../store/store.ts";
import type { TemplateRemoval } from "../templates/removal.ts";
import { createAllSandboxesHandlers } from "./all-sandboxes.ts";
import { type ProjectPart, startProjectDeleting } from "./deletion.ts";
import { createProjectHandlers } from "./handlers.ts";
import { parseRegions } from "./regions.ts";
import { createTeamHandlers } from "./teams.ts";
import { createWorkspaceHandlers } from "./workspaces.ts";

interface StartProjectsDeps {
  readonly store: Store;
  readonly callers: Callers;
  readonly ending: Pick<Ending, "kill">;
  readonly builds: Pick<BuildQueue, "cancelAll">;
  readonly templates: TemplateRemoval;
  /** What other folders keep for projects. */
  readonly parts: readonly ProjectPart[];
}

export function startProjects({ config, now, log, teardown }: Base, { callers, ...used }: StartProjectsDeps) {
  const { store } = used;
  const deleting = startProjectDeleting({ ...used, ...callers, log, everyMs: config.reconcileEveryMs });
  teardown.add("project deletion", () => deleting.stop());
  const projects = createProjectHandlers({
    ...used,
    ...callers,
    deleting,
    contact: config.supportContact,
    regions: parseRegions(config.regions),
  });
  return {
    projects: projects.own,
    projectsAdmin: projects.admin,
    workspaces: createWorkspaceHandlers(store.workspaces),
    allSandboxes: createAllSandboxesHandlers({ store, now }),
    teams: createTeamHandlers({ projects: store.projects, keys: callers.keys, cliLogin: config.cliLogin }),
  };
}

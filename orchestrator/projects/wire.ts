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

interface ProjectsDeps {
  readonly store: Store;
  readonly callers: Callers;
  readonly ending: Ending;
  readonly builds: BuildQueue;
  readonly templates: TemplateRemoval;
  /** What other folders keep for projects. */
  readonly parts: readonly ProjectPart[];
}

export function startProjects(base: Base, { store, callers, ending, builds, templates, parts }: ProjectsDeps) {
  const { config, now, log, teardown } = base;
  const { identity, limits, keys } = callers;
  const everyMs = config.reconcileEveryMs;
  const deleting = startProjectDeleting({ store, ending, builds, templates, identity, parts, log, everyMs });
  teardown.add("project deletion", () => deleting.stop());
  const contact = config.supportContact;
  const regions = parseRegions(config.regions);
  const projects = createProjectHandlers({ store, limits, regions, contact, deleting, parts, identity });
  return {
    projects: projects.own,
    projectsAdmin: projects.admin,
    workspaces: createWorkspaceHandlers(store.workspaces),
    allSandboxes: createAllSandboxesHandlers({ store, now }),
    teams: createTeamHandlers({ projects: store.projects, keys, cliLogin: config.cliLogin }),
  };
}

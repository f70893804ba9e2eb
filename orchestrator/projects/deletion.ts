/**
 * The orchestrator deletes a project in rounds. A round asks the ordinary lifecycles to remove the project's objects, and counts
 * those that are left. So a round can stop at any line, and another process continues. The project's row goes last.
 */

import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { BuildQueue } from "../builds/queue.ts";
import type { Ending } from "../lifecycle/ending/kill.ts";
import type { Project } from "../store/projects/record.ts";
import type { Store } from "../store/store.ts";
import type { TemplateRemoval } from "../templates/removal.ts";

/** Another folder keeps objects of this kind for projects. It counts those of one project, and removes them. */
export interface ProjectPart {
  readonly name: string;
  count(projectId: string): Promise<number>;
  /** Removes all of it, or as much as can be removed now. Repeatable. */
  remove(projectId: string): Promise<void>;
}

export interface ProjectDeleting {
  /** Resolves when the project is closed and its keys are deleted; the rest follows. */
  begin(project: Project): Promise<void>;
  stop(): Promise<void>;
}

export interface ProjectDeletingDeps {
  readonly store: Store;
  readonly ending: Ending;
  readonly builds: Pick<BuildQueue, "cancelAll">;
  readonly templates: TemplateRemoval;
  readonly identity: { forgetProject(projectId: string): void };
  /** What other folders keep for projects; removed after the sandboxes. */
  readonly parts: readonly ProjectPart[];
  readonly log: Log;
  readonly everyMs: number;
}

const KILL_AT_ONCE = 16;

export function startProjectDeleting(deps: ProjectDeletingDeps): ProjectDeleting {
  const rounds = loop({ name: "project deletion", everyMs: deps.everyMs, log: deps.log }, async () => {
    for (const projectId of await deps.store.projectDeletions.underWay()) await deleteRound(projectId, deps);
  });

  return {
    async begin(project) {
      await deps.store.projectDeletions.begin(project);
      deps.identity.forgetProject(project.id);
      deps.log.info({ projectId: project.id }, "deleting a project");
      rounds.wake();
    },
    stop: () => rounds.stop(),
  };
}

/** One round for one project. An object that cannot be removed now does not keep the others. */
export async function deleteRound(projectId: string, deps: Omit<ProjectDeletingDeps, "everyMs">): Promise<void> {
  const { store, log } = deps;
  // The process may have died between the deletion of the keys and this.
  deps.identity.forgetProject(projectId);
  const steps: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["builds", () => deps.builds.cancelAll(projectId)],
    ["sandboxes", () => killAll(projectId, deps)],
    ...deps.parts.map((part) => [part.name, () => part.remove(projectId)] as const),
    ["templates", () => removeTemplates(projectId, deps)],
    ["history", () => forgetHistory(projectId, deps)],
  ];
  for (const [step, work] of steps) {
    try {
      await work();
    } catch (error) {
      log.warn({ err: error, projectId, step }, "could not remove everything of a project that is being deleted yet");
    }
  }
  for (const part of deps.parts) if ((await part.count(projectId)) > 0) return;
  if (await store.projectDeletions.finish(projectId)) log.info({ projectId }, "deleted a project");
}

type Deps = Omit<ProjectDeletingDeps, "everyMs">;

async function killAll(projectId: string, { store, ending, log }: Deps): Promise<void> {
  const rest = (await store.sandboxes.liveIds(projectId)).values();
  const worker = async () => {
    for (const id of rest) {
      try {
        await ending.kill(id, "admin");
      } catch (error) {
        log.warn(
          { err: error, sandboxId: id, projectId },
          "could not end a sandbox of a project that is being deleted",
        );
      }
    }
  };
  await Promise.all(Array.from({ length: KILL_AT_ONCE }, worker));
}

/** A template from which sandboxes of other projects were started stays until they have ended; no new one can start from it. */
async function removeTemplates(projectId: string, { store, templates }: Deps): Promise<void> {
  await store.projectDeletions.unpublish(projectId);
  for (const { id, kind } of await store.projectDeletions.templates(projectId)) {
    if (kind === "template") await templates.removeTemplate(id);
    else await templates.removeSnapshots(id);
  }
}

async function forgetHistory(projectId: string, { store }: Deps): Promise<void> {
  while (await store.projectDeletions.forgetHistory(projectId)) continue;
}

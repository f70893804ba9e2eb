/** Handlers of the routes about projects, for operators and for a project's own key. */

import type {
  Deletion,
  projectAdminApi,
  projectApi,
  Project as ShownProject,
} from "../../shared/api/projects/projects.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { checkReference, findLivingProject, findProject } from "../access/find.ts";
import type { Limits } from "../access/limits.ts";
import { usedOf } from "../access/refusals.ts";
import { iso } from "../forms/time.ts";
import { LIMIT_NAMES, type LimitName } from "../store/projects/limits.ts";
import { isProject } from "../store/projects/projects.ts";
import type { ProjectDeletion } from "../store/projects/record.ts";
import { type Project } from "../store/projects/record.ts";
import type { Store } from "../store/store.ts";
import type { ProjectDeleting, ProjectPart } from "./deletion.ts";
import { readRegion } from "./regions.ts";

export interface ProjectHandlersDeps {
  readonly store: Store;
  readonly limits: Limits;
  readonly regions: readonly string[];
  readonly contact: string;
  readonly deleting: ProjectDeleting;
  readonly parts: readonly ProjectPart[];
  /** Drops what is cached of the project, so that the next call sees its new state. */
  readonly identity: { forgetProject(projectId: string): void };
}

export function createProjectHandlers(deps: ProjectHandlersDeps) {
  const { store, identity } = deps;

  async function shownLimits(project: Project) {
    const limits = deps.limits.of(project);
    const use = await store.projectUse.of(project.id);
    const parts = new Map<string, number>();
    for (const part of deps.parts) parts.set(part.name, await part.count(project.id));
    const shown = LIMIT_NAMES.map((name) => {
      const used = usedOf(use, name) ?? (name === "volumes" ? (parts.get(name) ?? 0) : undefined);
      return [
        name,
        { limit: limits[name] ?? null, used: used ?? null, own: project.limits[name] !== undefined },
      ] as const;
    });
    type Shown = (typeof shown)[number][1];
    return { limits: Object.fromEntries(shown) as Record<LimitName, Shown>, contact: deps.contact };
  }

  async function changed(reference: string, change: (project: Project) => Promise<Project | undefined>) {
    const found = await findLivingProject(store.projects, reference, "path field 'projectID'");
    const project = await change(found);
    if (project === undefined) throw new AppError("conflict", `project '${reference}' is being deleted`);
    identity.forgetProject(project.id);
    return toShown(project);
  }

  async function toDeletion(deletion: ProjectDeletion): Promise<Deletion> {
    const { projectId, begunAt, finishedAt } = deletion;
    const remaining: Record<string, number> = { ...(await store.projectUse.remaining(projectId)) };
    for (const part of deps.parts) remaining[part.name] = await part.count(projectId);
    return {
      teamID: projectId,
      projectID: deletion.publicId,
      name: deletion.name,
      status: finishedAt === undefined ? "deleting" : "deleted",
      startedAt: iso(begunAt),
      finishedAt: finishedAt === undefined ? null : iso(finishedAt),
      remaining,
    };
  }

  async function deletionOf(reference: string): Promise<Deletion> {
    checkReference(reference, "path field 'projectID'");
    const deletion = await store.projectDeletions.find(reference);
    if (deletion === undefined) throw new AppError("not_found", `project '${reference}' is not being deleted`);
    return toDeletion(deletion);
  }

  const own: Handlers<typeof projectApi, Project> = {
    async projectLimits({ params }, { caller }) {
      if (isProject(caller, params.projectID)) return shownLimits(caller);
      throw new AppError("not_found", `project '${params.projectID}' not found, or not the caller's`);
    },
  };

  const admin: Handlers<typeof projectAdminApi> = {
    async createProject({ body: { name, slug, region, nodeLabels, workspaceID: workspaceId, limits } }) {
      const asked = { slug, region: readRegion(region, deps.regions), nodeLabels, workspaceId, limits };
      return toShown(await store.projects.create(name, asked));
    },
    listProjects: async ({ query }) => (await store.projects.list(query.workspaceID?.toLowerCase())).map(toShown),
    readProject: async ({ params }) =>
      toShown(await findProject(store.projects, params.projectID, "path field 'projectID'")),
    changeProject: ({ params, body: { workspaceID: workspaceId, ...change } }) =>
      changed(params.projectID, ({ id }) => store.projects.change(id, { ...change, workspaceId })),
    readProjectLimits: async ({ params }) =>
      shownLimits(await findProject(store.projects, params.projectID, "path field 'projectID'")),
    disableProject: ({ params, body }) =>
      changed(params.projectID, ({ id }) => store.projects.setStatus(id, "disabled", body.reason)),
    banProject: ({ params, body }) =>
      changed(params.projectID, ({ id }) => store.projects.setStatus(id, "banned", body.reason)),
    enableProject: ({ params }) =>
      changed(params.projectID, ({ id }) => store.projects.setStatus(id, "active", undefined)),
    async deleteProject({ params: { projectID } }) {
      checkReference(projectID, "path field 'projectID'");
      const project = await store.projects.find(projectID);
      // Repeating the request is harmless, also after the deletion has ended.
      if (project !== undefined) await deps.deleting.begin(project);
      const deletion = await store.projectDeletions.find(projectID);
      if (deletion === undefined) throw new AppError("not_found", `project '${projectID}' not found`);
      return toDeletion(deletion);
    },
    readProjectDeletion: ({ params }) => deletionOf(params.projectID),
  };

  return { own, admin };
}

function toShown(project: Project): ShownProject {
  return {
    teamID: project.id,
    projectID: project.publicId,
    name: project.name,
    slug: project.slug,
    workspaceID: project.workspaceId ?? null,
    region: project.region ?? null,
    nodeLabels: { ...project.nodeLabels },
    status: project.status,
    statusReason: project.statusReason ?? null,
    limits: { ...project.limits },
    createdAt: iso(project.createdAt),
  };
}

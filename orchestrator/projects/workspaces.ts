/** Handlers of workspaces, the groups of projects. */

import type { Workspace as ShownWorkspace, workspaceApi } from "../../shared/api/projects/projects.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { iso } from "../forms/time.ts";
import type { Workspace } from "../store/projects/record.ts";
import type { WorkspaceStore } from "../store/projects/workspaces.ts";

export function createWorkspaceHandlers(workspaces: WorkspaceStore): Handlers<typeof workspaceApi> {
  return {
    createWorkspace: async ({ body }) => toShown(await workspaces.create(body.name)),
    listWorkspaces: async () => (await workspaces.list()).map(toShown),
    async renameWorkspace({ params: { workspaceID }, body }) {
      const renamed = await workspaces.rename(workspaceID, body.name);
      if (renamed === undefined) throw unknown(workspaceID);
      return toShown(renamed);
    },
    async deleteWorkspace({ params: { workspaceID } }) {
      const outcome = await workspaces.delete(workspaceID);
      switch (outcome) {
        case "deleted":
          return;
        case "unknown":
          throw unknown(workspaceID);
        case "default":
          throw new AppError("conflict", `workspace '${workspaceID}' is the default one`);
        case "not empty":
          throw new AppError("conflict", `workspace '${workspaceID}' has projects: delete or move them first`);
      }
    },
  };
}

function toShown({ id, name, isDefault, createdAt }: Workspace): ShownWorkspace {
  return { workspaceID: id, name, isDefault, createdAt: iso(createdAt) };
}

function unknown(id: string): AppError {
  return new AppError("not_found", `workspace '${id}' not found`);
}

/** Handlers of teams and API keys, for members and for operators. */

import type { Static } from "typebox";
import type { CreatedTeamApiKey, keyApi, TeamApiKey, teamApi } from "../../shared/api/teams.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { iso } from "../sandboxes/view.ts";
import type { KeyStore } from "../store/keys.ts";
import type { Project, ProjectStore } from "../store/projects.ts";
import type { KeyRow } from "../store/tables.ts";
import type { Identity } from "./key-cache.ts";

export interface KeysDeps {
  readonly keys: KeyStore;
  readonly identity: Pick<Identity, "forget">;
}

export interface Keys {
  create(project: Project, name: string): Promise<Static<typeof CreatedTeamApiKey>>;
  /** The key no longer works once this resolves. @throws {AppError} not_found. */
  delete(project: Project, id: string): Promise<void>;
}

export function createKeys({ keys, identity }: KeysDeps): Keys {
  return {
    async create(project, name) {
      const { key, row } = await keys.create(project.id, name);
      return { ...toShown(row), key };
    },
    async delete(project, id) {
      const hash = await keys.delete(project.id, id);
      if (hash === undefined) throw noKey(id);
      identity.forget(hash);
    },
  };
}

export function createKeyHandlers(deps: {
  readonly keys: Keys;
  readonly store: KeyStore;
}): Handlers<typeof keyApi, Project> {
  return {
    listKeys: async (_, { caller }) => (await deps.store.list(caller.id)).map(toShown),
    createKey: ({ body }, { caller }) => deps.keys.create(caller, body.name),
    async renameKey({ params, body }, { caller }) {
      if (!(await deps.store.rename(caller.id, params.apiKeyID, body.name))) throw noKey(params.apiKeyID);
    },
    deleteKey: ({ params }, { caller }) => deps.keys.delete(caller, params.apiKeyID),
  };
}

/** The store keeps hashes, so the field for the key itself is empty: only the answer to its creation shows it. */
export function createTeamHandlers(projects: ProjectStore): Handlers<typeof teamApi> {
  return {
    async listTeams() {
      const all = await projects.list();
      return all.map(({ id, name }, index) => ({ teamID: id, name, apiKey: "", isDefault: index === 0 }));
    },
  };
}

function toShown(row: KeyRow): TeamApiKey {
  return {
    id: row.id,
    name: row.name,
    mask: {
      prefix: "svc_",
      valueLength: row.value_length,
      maskedValuePrefix: row.mask_prefix,
      maskedValueSuffix: row.mask_suffix,
    },
    createdAt: iso(row.created_at),
    createdBy: null,
    lastUsed: row.last_used_at === null ? null : iso(row.last_used_at),
  };
}

function noKey(id: string): AppError {
  return new AppError("not_found", `API key '${id}' not found`);
}

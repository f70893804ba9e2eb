/** Handler of GET /teams, which the CLI's login reads a project and its key from. */

import type { teamApi } from "../../shared/api/teams.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import type { Keys } from "../access/keys.ts";
import type { ProjectStore } from "../store/projects/projects.ts";
import type { Project } from "../store/projects/record.ts";

export interface TeamsDeps {
  readonly projects: ProjectStore;
  readonly keys: Keys;
  /** The operator allows the answer to make keys. */
  readonly cliLogin: boolean;
}

/** The one key of a project that a login replaces. */
const CLI_KEY = "e2b CLI";

/**
 * The store keeps only hashes of keys, so the answer can show a key only by making it. It does so for the operator who allowed
 * it (SVC_CLI_LOGIN): a new key for each active project, in place of the one that the former login made.
 */
export function createTeamHandlers({ projects, keys, cliLogin }: TeamsDeps): Handlers<typeof teamApi> {
  async function newKey(project: Project): Promise<string> {
    const former = (await keys.list(project)).filter(({ name }) => name === CLI_KEY);
    const { key } = await keys.create({ ...project, credential: { kind: "admin" } }, { name: CLI_KEY });
    // The new key exists first: a failure in between leaves one key too many, which the next login deletes.
    for (const { id } of former) await keys.delete(project, id);
    return key;
  }

  return {
    async listTeams() {
      const living = (await projects.list()).filter(({ status }) => status !== "deleting");
      const teams = [];
      for (const [index, project] of living.entries()) {
        const apiKey = cliLogin && project.status === "active" ? await newKey(project) : "";
        teams.push({ teamID: project.id, name: project.name, apiKey, isDefault: index === 0 });
      }
      return teams;
    },
  };
}

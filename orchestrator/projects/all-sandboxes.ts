/** Handler of the operators' list of the sandboxes of all projects. */

import type { adminSandboxApi } from "../../shared/api/projects/all-sandboxes.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { SandboxState } from "../../shared/states/sandbox-state.ts";
import { checkReference } from "../access/find.ts";
import { iso } from "../forms/time.ts";
import { fromToken, toToken } from "../sandboxes/lists.ts";
import type { AnySandbox } from "../store/projects/all-sandboxes.ts";
import type { Store } from "../store/store.ts";

const NOT_ENDED: readonly SandboxState[] = [
  "starting",
  "running",
  "pausing",
  "paused",
  "snapshotting",
  "rewinding",
  "killing",
];
const ALL: readonly SandboxState[] = [...NOT_ENDED, "gone"];

export function createAllSandboxesHandlers(deps: {
  readonly store: Store;
  readonly now: () => number;
}): Handlers<typeof adminSandboxApi> {
  const { store } = deps;
  return {
    async listAllSandboxes({ query }, { header }) {
      const { limit = 100, nodeID: nodeId, teamID } = query;
      const states = query.state === undefined ? NOT_ENDED : query.state.split(",").map(readState);
      if (teamID !== undefined) checkReference(teamID, "query field 'teamID'");
      const project = teamID === undefined ? undefined : await store.projects.find(teamID);
      if (teamID !== undefined && project === undefined) return [];
      const after = fromToken(query.nextToken, "desc");
      const found = await store.allSandboxes.list(
        { states, nodeId, projectId: project?.id },
        { limit: limit + 1, after: after === undefined ? undefined : { createdAt: after.startedAt, id: after.id } },
      );
      const page = found.slice(0, limit);
      const last = page.at(-1);
      if (found.length > limit && last !== undefined) {
        header("x-next-token", toToken({ startedAt: last.createdAt, id: last.id }, "desc"));
      }
      return page.map((sandbox) => toShown(sandbox, deps.now()));
    },
  };
}

function readState(text: string): SandboxState {
  const state = ALL.find((known) => known === text.trim());
  if (state === undefined) throw new AppError("bad_request", `query field 'state' must be a list of ${ALL.join(", ")}`);
  return state;
}

function toShown(sandbox: AnySandbox, now: number) {
  return {
    sandboxID: sandbox.id,
    teamID: sandbox.projectId,
    projectID: sandbox.project?.publicId ?? null,
    projectName: sandbox.project?.name ?? null,
    nodeID: sandbox.nodeId,
    state: sandbox.state,
    templateID: sandbox.templateId,
    createdAt: iso(sandbox.createdAt),
    startedAt: iso(sandbox.startedAt),
    endAt: iso(sandbox.endAt),
    ageSeconds: Math.max(0, Math.floor(((sandbox.endedAt ?? now) - sandbox.createdAt) / 1000)),
    cpuCount: sandbox.cpuCount,
    memoryMB: sandbox.memoryMB,
    diskSizeMB: sandbox.diskSizeMB,
  };
}

/** Handlers of the operators' routes for volumes that a node has and no record names. */

import type { KeptVolume } from "../../shared/agent-api/routes.ts";
import type { unknownVolumeApi } from "../../shared/api/storage.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { findLivingProject } from "../access/find.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { ProjectStore } from "../store/projects/projects.ts";
import type { VolumeStore } from "../store/volumes/volumes.ts";

interface UnknownVolumesDeps {
  readonly volumes: VolumeStore;
  readonly projects: ProjectStore;
  readonly nodes: Nodes;
  readonly timeoutMs: number;
}

/** An operator's decision is not limited. */
const NO_LIMITS = { count: Number.POSITIVE_INFINITY, totalMb: 0 };

export function createUnknownVolumeHandlers(deps: UnknownVolumesDeps): Handlers<typeof unknownVolumeApi> {
  const { volumes, projects, nodes, timeoutMs } = deps;

  /** @throws {AppError} not_found; conflict when a record names it */
  async function find(nodeId: string, id: string): Promise<KeptVolume> {
    if (nodes.get(nodeId) === undefined) throw new AppError("not_found", `node '${nodeId}' not found`);
    const record = await volumes.get(id);
    if (record?.nodeId === nodeId)
      throw new AppError("conflict", `volume ${id} is '${record.name}' of project ${record.projectId}`);
    const kept = await nodes.agent(nodeId).listVolumes({}, { timeoutMs });
    const found = kept.find(({ volumeId }) => volumeId === id);
    if (found === undefined) throw new AppError("not_found", `node '${nodeId}' has no volume ${id}`);
    return found;
  }

  return {
    async adoptVolume({ params, body }) {
      const { id: projectId } = await findLivingProject(projects, body.teamID, "body field 'teamID'");
      const { volumeId: id, sizeMb } = await find(params.nodeID, params.volumeID.toLowerCase());
      const { name } = body;
      if ((await volumes.get(id)) !== undefined)
        throw new AppError("conflict", `volume ${id} is on another node: this is a copy of it`);
      const refused = await volumes.add({ id, projectId, name, nodeId: params.nodeID, sizeMb }, NO_LIMITS, "ready");
      if (refused !== undefined) throw new AppError("conflict", `Volume with name '${name}' already exists`);
      return { volumeID: id, name };
    },
    async deleteUnknownVolume({ params }) {
      const { volumeId } = await find(params.nodeID, params.volumeID.toLowerCase());
      await nodes.agent(params.nodeID).deleteVolume({ params: { volumeId } }, { timeoutMs });
    },
  };
}

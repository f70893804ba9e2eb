/** Handlers of the volume routes. */

import type { volumeApi } from "../../shared/api/volumes.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Project } from "../store/projects/projects.ts";
import type { Volume, VolumeStore } from "../store/volumes/volumes.ts";
import type { VolumeTokens } from "./tokens.ts";
import type { VolumeWork } from "./volumes.ts";

interface VolumeHandlersDeps {
  readonly store: Pick<VolumeStore, "list">;
  readonly work: VolumeWork;
  readonly tokens: Pick<VolumeTokens, "sign">;
}

export function createVolumeHandlers({ store, work, tokens }: VolumeHandlersDeps): Handlers<typeof volumeApi, Project> {
  const shown = async (volume: Volume) => ({
    volumeID: volume.id,
    name: volume.name,
    token: await tokens.sign(volume),
  });
  const missing = (id: string) => new AppError("not_found", `Volume '${id}' not found`);
  return {
    async listVolumes(_input, { caller }) {
      return (await store.list(caller.id)).map(({ id, name }) => ({ volumeID: id, name }));
    },
    async createVolume({ body }, { caller }) {
      return shown(await work.create(caller, body.name));
    },
    async getVolume({ params }, { caller, header }) {
      const volume = await work.find(caller.id, params.volumeID.toLowerCase());
      if (volume === undefined) throw missing(params.volumeID);
      header("cache-control", "no-store");
      return shown(volume);
    },
    async deleteVolume({ params }, { caller }) {
      if (!(await work.delete(caller, params.volumeID.toLowerCase()))) throw missing(params.volumeID);
    },
  };
}

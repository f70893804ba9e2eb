/** Handlers of the volume routes. */

import type { volumeApi } from "../../shared/api/volumes/volumes.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { isUuid } from "../../shared/ids.ts";
import type { Project } from "../store/projects/record.ts";
import type { Volume } from "../store/volumes/record.ts";
import type { VolumeStore } from "../store/volumes/volumes.ts";
import type { VolumeTokens } from "./tokens.ts";
import type { VolumeWork } from "./volumes.ts";

interface VolumeHandlersDeps {
  readonly store: VolumeStore;
  readonly work: VolumeWork;
  readonly tokens: VolumeTokens;
  /** Base domain of the platform, as sandboxes have it. */
  readonly domain: string;
}

export function createVolumeHandlers(deps: VolumeHandlersDeps): Handlers<typeof volumeApi, Project> {
  const { store, work, tokens, domain } = deps;
  const shown = async (volume: Volume) => ({
    volumeID: volume.id,
    name: volume.name,
    token: await tokens.sign(volume),
    // Without it the SDK would take its own default, and send token and content to a host that is not this platform's.
    domain,
  });
  const missing = (id: string) => new AppError("not_found", `Volume '${id.slice(0, 128)}' not found`);
  return {
    async listVolumes(_input, { caller }) {
      return (await store.list(caller.id)).map(({ id, name }) => ({ volumeID: id, name }));
    },
    async createVolume({ body }, { caller }) {
      return shown(await work.create(caller, body.name));
    },
    async getVolume({ params }, { caller, header }) {
      const id = params.volumeID.toLowerCase();
      const volume = isUuid(id) ? await work.find(caller.id, id) : undefined;
      if (volume === undefined) throw missing(params.volumeID);
      header("cache-control", "no-store");
      return shown(volume);
    },
    async deleteVolume({ params }, { caller }) {
      const id = params.volumeID.toLowerCase();
      if (!isUuid(id) || !(await work.delete(caller, id))) throw missing(params.volumeID);
    },
  };
}

/** The volumes of a fake agent: directories, with the agent's own code for their files. */

import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { addVolumeRoutes } from "../../../agent/volumes/routes.ts";
import { createVolumeFiles } from "../../../agent/volumes/volume-files.ts";
import type { Volumes } from "../../../agent/volumes/volumes.ts";
import type { AppError } from "../../../shared/http/errors.ts";
import { directoryVolumes, volumeProgram } from "../volumes/directories.ts";

export interface FakeVolumes {
  readonly folder: string;
  /** Called before a volume is made or deleted; what it throws is the answer. */
  onMake: (id: string, sizeMb: number) => Promise<void> | void;
  onDelete: (id: string) => Promise<void> | void;
  /** Called before the volumes are listed for the orchestrator. */
  onList: () => void;
  readonly list: Volumes["list"];
  /** Makes a volume that nobody asked for. */
  readonly make: Volumes["make"];
  /** Loses a volume, as a broken disk does. */
  readonly lose: Volumes["remove"];
  /** Why nothing may be written. */
  refusal: AppError | undefined;
}

export function createFakeVolumes(server: FastifyInstance, authenticate: (request: FastifyRequest) => void) {
  const folder = mkdtempSync(join(tmpdir(), "svc-volumes-"));
  const volumes = directoryVolumes(join(folder, "volumes"));
  const state: FakeVolumes = {
    folder: join(folder, "volumes"),
    onMake: () => undefined,
    onDelete: () => undefined,
    onList: () => undefined,
    make: (id, sizeMb) => volumes.make(id, sizeMb),
    lose: (id) => volumes.remove(id),
    list: () => volumes.list(),
    refusal: undefined,
  };
  const files = createVolumeFiles({ volumes, program: volumeProgram(folder) });
  addVolumeRoutes(server, { files, authenticate, refusal: () => state.refusal });
  return {
    state,
    stop: () => rm(folder, { recursive: true, force: true }),
    handlers: {
      async makeVolume({ params, body }: { params: { volumeId: string }; body: { sizeMb: number } }) {
        await state.onMake(params.volumeId, body.sizeMb);
        await volumes.make(params.volumeId, body.sizeMb);
      },
      listVolumes: () => {
        state.onList();
        return volumes.list().map(({ id, sizeMb, usedBytes }) => ({ volumeId: id, sizeMb, usedBytes }));
      },
      async deleteVolume({ params }: { params: { volumeId: string } }) {
        await state.onDelete(params.volumeId);
        await volumes.remove(params.volumeId);
      },
    },
  };
}

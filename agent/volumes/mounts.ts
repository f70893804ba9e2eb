/** Puts volumes into a container that has not been started, or is about to be restored. */

import type { VolumeMount } from "../../shared/agent-api/routes.ts";
import type { Annotations } from "../containers/annotations.ts";
import { filesOf, type Volumes } from "./volumes.ts";

interface MountDeps {
  readonly annotations: Pick<Annotations, "mountVolumes">;
  readonly volumes: Pick<Volumes, "open">;
}

/** @throws {AppError} not_found if this node does not have one of them */
export async function mountVolumes(
  containerId: string,
  mounts: readonly VolumeMount[],
  { annotations, volumes }: MountDeps,
): Promise<void> {
  if (mounts.length === 0) return;
  const sources: { source: string; path: string }[] = [];
  for (const { volumeId, path } of mounts) sources.push({ source: filesOf(await volumes.open(volumeId)), path });
  await annotations.mountVolumes(containerId, sources);
}

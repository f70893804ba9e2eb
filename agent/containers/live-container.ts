/** A running container with its own network slot, pooled or claimed. */

import type { BuildReference, Resources } from "../../shared/agent-api/routes.ts";
import type { Slot } from "../network/addresses.ts";
import type { Cgroup } from "./cgroup/cgroup.ts";

/** Everything that decides whether a container can serve a start request. */
export interface Flavour {
  readonly build: BuildReference;
  readonly resources: Resources;
  /** Directory of its mounted envd runtime. */
  readonly runtime: string;
}

export interface LiveContainer extends Flavour {
  readonly id: string;
  readonly pid: number;
  readonly slot: Slot;
  readonly controlToken: string;
  readonly cgroup: Cgroup;
  readonly upperDirectory: string | undefined;
  /** Unix milliseconds. */
  readonly createdAt: number;
}

/**
 * A key that is equal for interchangeable containers. Processors and memory are not part of it: a container gets those of
 * its sandbox when it is claimed (resize.ts).
 */
export function flavourKey({ build, resources, runtime }: Flavour): string {
  return JSON.stringify([build.templateId, build.buildId, build.image, resources.diskSizeMB, runtime]);
}

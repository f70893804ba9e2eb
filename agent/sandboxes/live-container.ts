/** A container that runs, with the network slot that is its own. Pooled or claimed: that is said elsewhere. */

import type { BuildReference, Resources } from "../../shared/agent-api/routes.ts";
import type { Cgroup } from "../containers/cgroup.ts";
import type { Slot } from "../network/addresses.ts";

/** Everything that decides whether a container can serve a request. */
export interface Flavour {
  readonly build: BuildReference;
  readonly resources: Resources;
  /** Directory of the envd runtime that it has mounted. */
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

/** Equal for containers that are interchangeable. */
export function flavourKey({ build, resources, runtime }: Flavour): string {
  return JSON.stringify([
    build.templateId,
    build.buildId,
    build.image,
    resources.cpuCount,
    resources.memoryMB,
    resources.diskSizeMB,
    runtime,
  ]);
}

/** Docker on this machine, and what belongs to its containers beside Docker's own objects. */

import type { AgentConfig } from "../config.ts";
import { type Annotations, hostAnnotations } from "./annotations.ts";
import { type OpenCgroup, openCgroup } from "./cgroup/cgroup.ts";
import type { Containers } from "./containers.ts";
import { type Envd, httpEnvd } from "./envd.ts";
import { type EnvdRuntime, envdRuntimes } from "./envd-runtime.ts";

export interface Docker {
  readonly containers: Containers;
  /** Notes that the agent leaves for the OCI runtime, for each container. */
  readonly annotations: Annotations;
  readonly openCgroup: OpenCgroup;
  readonly envd: Envd;
  /** Without a directory: the current runtime. */
  readonly runtime: (directory?: string) => Promise<EnvdRuntime>;
}

export function hostDocker(config: AgentConfig, containers: Containers): Docker {
  return {
    containers,
    annotations: hostAnnotations(config.runDir),
    openCgroup,
    envd: httpEnvd(),
    runtime: envdRuntimes(config.envdRuntime),
  };
}

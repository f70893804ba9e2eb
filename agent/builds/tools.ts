/** What builds use of this machine besides its containers. */

import { type Login, registryLogin } from "./images/registry-login.ts";
import { envdProcesses, type Processes } from "./steps/processes.ts";

export interface BuildTools {
  /** Runs programs inside a container, as clients do. */
  readonly processes: Processes;
  /** Connections to image registries. */
  readonly login: Login;
}

export function hostBuildTools(): BuildTools {
  return { processes: envdProcesses(), login: registryLogin({ now: Date.now }) };
}

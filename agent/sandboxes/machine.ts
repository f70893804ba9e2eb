/** What sandboxes use of their machine, in groups; the folders of the groups own them. */

import type { Docker } from "../containers/host-docker.ts";
import type { Egress } from "../egress-supervisor/host-egress.ts";
import type { Machine } from "../host/machine.ts";
import type { Network } from "../network/host-network.ts";
import type { NodeDisks } from "../node-disk/host-disks.ts";
import type { Volumes } from "../volumes/volumes.ts";

export interface SandboxMachine {
  /** Its processors, memory and limits. */
  readonly host: Machine;
  readonly docker: Docker;
  readonly network: Network;
  readonly egress: Egress;
  readonly disks: NodeDisks;
  readonly volumes: Volumes;
}

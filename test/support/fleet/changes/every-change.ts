/** Every change of the platform's API, by its route, and the routes that no test of a fleet asks for. */

import type { Change } from "./change.ts";
import { ofPlatform } from "./of-platform.ts";
import { ofProjects } from "./of-projects.ts";
import { ofSandboxes } from "./of-sandboxes.ts";
import { ofTemplates } from "./of-templates.ts";
import { ofVolumes } from "./of-volumes.ts";
import { ofWholeProjects } from "./of-whole-projects.ts";

export const EVERY_CHANGE: readonly Change[] = [
  ...ofSandboxes,
  ...[...ofTemplates, ...ofVolumes, ...ofProjects].map((one): Change => ({ ...one, as: "own project" })),
  ...[...ofPlatform, ...ofWholeProjects].map((one): Change => ({ ...one, as: "operator" })),
];

const MACHINES = "a machine of the fleet would have to join anew (test/machines)";
const FOREIGN = "it needs a node of another database (test/chaos/strange-database.test.ts)";
const UNNAMED = "it needs a volume that no record names (test/integration/orchestrator/volumes/sweep.test.ts)";

/** Each with its reason. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  "DELETE /nodes/{nodeID}": MACHINES,
  "DELETE /admin/edges/{edgeID}": MACHINES,
  "POST /nodes/{nodeID}/adopt": FOREIGN,
  "POST /nodes/{nodeID}/discard": FOREIGN,
  "POST /nodes/{nodeID}/held/{heldID}": FOREIGN,
  "POST /admin/nodes/{nodeID}/volumes/{volumeID}": UNNAMED,
  "DELETE /admin/nodes/{nodeID}/volumes/{volumeID}": UNNAMED,
  "POST /admin/rotation/authority":
    "it takes every certificate of the fleet with it (test/integration/orchestrator/nodes/authority.test.ts)",
};

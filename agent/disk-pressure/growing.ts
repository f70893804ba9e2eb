/** Who writes to the node's disk and may be held while it is short: sandboxes are frozen, builds fail. */

import { AppError } from "../../shared/http/errors.ts";
import type { BuildParts } from "../builds/start-builds.ts";
import { type GrowerDeps, growerOf } from "../node-disk/growers.ts";
import type { Held } from "../node-disk/pressure.ts";
import type { Sandboxes } from "../sandboxes/sandboxes.ts";

const FAILED = "the build was ended: the node's disk is short, and the build grew most";

export interface Growing {
  readonly sandboxes: Sandboxes;
  readonly building: BuildParts;
  /** The sandbox stands still for another reason too. */
  readonly staysFrozen: (executionId: string) => boolean;
}

export function growersOf({ sandboxes, building, staysFrozen }: Growing, deps: GrowerDeps): Held[] {
  return [
    ...sandboxes.running().map(({ executionId, container }) =>
      growerOf(
        {
          id: executionId,
          container,
          release: () => {
            if (!staysFrozen(executionId)) container.cgroup.thaw();
          },
          end: () => sandboxes.end(executionId, "disk_full"),
        },
        deps,
      ),
    ),
    ...building.buildContainers().map(({ buildId, container }) => {
      // Fails a build instead of freezing it: a frozen build helps no user, and a later build can repeat its work.
      const fail = () => building.builds.fail(buildId, new AppError("no_space", FAILED));
      return growerOf({ id: buildId, container, hold: fail, end: async () => fail() }, deps);
    }),
  ];
}

/** Ids of all containers in which clients' programs run. */
export function growingContainers({ sandboxes, building }: Omit<Growing, "staysFrozen">): string[] {
  return [...sandboxes.running(), ...building.buildContainers()].map(({ container }) => container.id);
}

/** A front door for all tests of a `describe` block, with one sandbox; those tests must not depend on each other. */

import { afterAll, beforeAll } from "vitest";
import type { EdgeRoute } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { type FrontDoor, type FrontDoorOptions, openFrontDoor } from "./front-door.ts";

export interface SharedDoor extends Pick<FrontDoor, "edge" | "port" | "add"> {
  /** The route to the block's sandbox. */
  readonly route: EdgeRoute;
}

/** Opens the front door before the tests of the block, and closes it after them. */
export function sharedDoor(options: FrontDoorOptions): SharedDoor {
  let door: FrontDoor;
  let route: EdgeRoute;
  beforeAll(async () => {
    door = await openFrontDoor(options);
    route = door.add();
  });
  afterAll(() => door.stop());
  return {
    get edge() {
      return door.edge;
    },
    get port() {
      return door.port;
    },
    get route() {
      return route;
    },
    add: (given) => door.add(given),
  };
}

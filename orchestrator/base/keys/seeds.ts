/**
 * The seeds of sandboxes' tokens: the current one and earlier ones. A record names the seed of its sandbox, so that tokens
 * stay the same for as long as the sandbox exists; new sandboxes get the current seed. Pure.
 */

import { envdToken, trafficToken } from "../../../shared/ids.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import { createVersions } from "./versions.ts";

type Seeded = Pick<SandboxRecord, "id" | "seedId">;

export interface Seeds {
  /** Id of the seed that new sandboxes get. */
  readonly currentId: string;
  readonly current: string;
  /** The current seed first, the oldest last. */
  readonly all: readonly string[];
  /** Ids of `all`. */
  readonly ids: readonly string[];
  envdToken(sandbox: Seeded): string;
  /** The token that opens the ports of a sandbox without public traffic. */
  trafficToken(sandbox: Seeded): string;
}

/** @param previous earlier seeds, newest first */
export function createSeeds(current: string, previous: readonly string[]): Seeds {
  const seeds = createVersions("seed", current, previous);
  // A seed that was removed while a sandbox used it: that sandbox's next start gives it a token of the current seed.
  const seedOf = ({ seedId }: Seeded) => (seedId === undefined ? seeds.oldest : (seeds.of(seedId) ?? current));
  return {
    currentId: seeds.currentId,
    current,
    all: seeds.all,
    ids: seeds.ids,
    envdToken: (sandbox) => envdToken(seedOf(sandbox), sandbox.id),
    trafficToken: (sandbox) => trafficToken(seedOf(sandbox), sandbox.id),
  };
}

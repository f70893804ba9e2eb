/** Reads what the owners of templates want to be kept warm: after each change of a template, a tag or a build, by whichever orchestrator. */

import type { Log } from "../../../shared/program/log.ts";
import { type Loop, loop } from "../../../shared/program/loop.ts";
import type { Store } from "../../store/store.ts";
import type { Pools } from "./pool-targets.ts";

interface WishesDeps {
  readonly pools: Pick<Pools, "wanted">;
  readonly templates: Pick<Store["templates"], "warmPools">;
  readonly log: Log;
}

/** Less than nodes take to fill a pool. */
const EVERY_MS = 5_000;

export async function followWishes({ pools, templates, log }: WishesDeps): Promise<Pick<Loop, "stop">> {
  const read = async () => pools.wanted(await templates.warmPools());
  await read();
  return loop({ name: "warm pools that templates want", everyMs: EVERY_MS, log }, read);
}

/** Constructs the recovery of what an earlier agent process left, and later the janitor, which repairs the rest at intervals. */

import type { Teardown } from "../../shared/program/teardown.ts";
import type { AgentConfig } from "../config.ts";
import type { AgentDeps } from "../deps.ts";
import { recover } from "../recovery/apply.ts";
import { type JanitorDeps, startJanitor } from "../recovery/janitor.ts";
import { holdRemains } from "../recovery/remains.ts";
import type { Stores } from "../store/stores.ts";
import type { Events } from "./events.ts";

const HOUR_MS = 3_600_000;

export async function startRecovery(config: AgentConfig, deps: AgentDeps, stores: Stores, teardown: Teardown) {
  const { log } = deps;
  await holdRemains({ ...deps, stores, nodeId: config.nodeId, keepMs: config.holdHours * HOUR_MS });
  const found = await recover({ ...deps, stores });
  const cleared = found.cleared.catch((error: unknown) => log.warn({ err: error }, "could not remove leftovers"));
  teardown.add("leftovers", () => cleared);
  return { found, cleared };
}

interface JanitorSources extends Pick<JanitorDeps, "disposal" | "instruments" | "reach"> {
  readonly stores: Stores;
  readonly events: Events;
}

export function startRepairs(config: AgentConfig, deps: AgentDeps, base: JanitorSources, teardown: Teardown): void {
  const janitor = startJanitor({ ...deps, ...base, config });
  teardown.add("janitor", () => janitor.stop());
  base.events.on("engineBack", () => janitor.engineBack());
}

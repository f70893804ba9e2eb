/** Constructs the recovery of what an earlier agent process left, and later the janitor, which repairs the rest at intervals. */

import { type RecoveryResult, recover } from "../recovery/apply.ts";
import { type JanitorDeps, startJanitor } from "../recovery/janitor.ts";
import { holdRemains } from "../recovery/remains.ts";
import type { Base } from "./base.ts";

const HOUR_MS = 3_600_000;

export interface Recovered {
  readonly found: RecoveryResult;
  /** Resolves when the removal of the leftovers is over. */
  readonly cleared: Promise<void>;
}

export async function startRecovery({ config, machine, state, stores, now, log, teardown }: Base): Promise<Recovered> {
  const { containers } = machine.docker;
  const { files } = machine.memory;
  const { nodeId, holdHours } = config;
  const { databasePath } = state;
  await holdRemains({ containers, files, stores, nodeId, databasePath, keepMs: holdHours * HOUR_MS, now, log });
  const found = await recover({ machine, stores, now, log });
  const cleared = found.cleared.catch((error: unknown) => log.warn({ err: error }, "could not remove leftovers"));
  teardown.add("leftovers", () => cleared);
  return { found, cleared };
}

type JanitorParts = Pick<JanitorDeps, "reach" | "disposal" | "instruments">;

export function startRepairs(base: Base, { reach, disposal, instruments }: JanitorParts): void {
  const { config, machine, stores, events, now, log, teardown } = base;
  const janitor = startJanitor({ config, machine, stores, reach, disposal, instruments, now, log });
  teardown.add("janitor", () => janitor.stop());
  events.on("engineBack", () => janitor.engineBack());
}

/**
 * Every check, the cause before its effects: what does not run because Docker does not run is reported after Docker. So the first
 * failure of a report is the one to look at.
 */

import type { Check } from "./check.ts";
import { dockerChecks } from "./docker.ts";
import { machineChecks } from "./machine.ts";
import { networkChecks } from "./network.ts";
import { nodeChecks } from "./nodes.ts";
import { objectChecks } from "./objects.ts";
import { programChecks } from "./programs.ts";
import { unitChecks } from "./units.ts";
import { workChecks } from "./work.ts";

export const ALL_CHECKS: readonly Check[] = [
  ...machineChecks,
  ...dockerChecks,
  ...networkChecks,
  ...unitChecks,
  ...programChecks,
  ...nodeChecks,
  ...objectChecks,
  ...workChecks,
];

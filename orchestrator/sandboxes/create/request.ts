/** What the caller of a create asked for, once nothing speaks against it that is known without the template. */

import type { CreateBody } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import type { Limits } from "../../access/limits.ts";
import type { Refusals } from "../../access/refusals.ts";
import { countDestinations, type NetworkLimits } from "../../network-policy/options.ts";
import type { PlaceholderCheck } from "../../secrets/placeholder-check.ts";
import type { Project } from "../../store/projects/record.ts";
import { readOptions, type SandboxOptions } from "../options.ts";

export interface RequestDeps extends NetworkLimits {
  readonly limits: Limits;
  readonly refusals: Refusals;
  readonly placeholders: PlaceholderCheck;
}

/** @throws {AppError} bad_request, forbidden */
export async function readRequest(
  project: Project,
  body: CreateBody,
  defaultTimeoutSeconds: number,
  { proxyRanges, limits, refusals, placeholders }: RequestDeps,
): Promise<SandboxOptions> {
  const options = readOptions(body, { defaultTimeoutSeconds, proxyRanges, maxHours: limits.hours(project) });
  refusals.checkEgressRules(countDestinations(options.network), limits.of(project).egressRules);
  const tokens = new Set(Object.keys(body.iam?.tokens ?? {}));
  await placeholders.check(project.id, options.network?.rules, tokens);
  return options;
}

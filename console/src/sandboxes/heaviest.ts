/** Which sandboxes use most memory. Pure. */

import type { SandboxMetric } from "../../../shared/api/sandboxes/sandbox-shapes.ts";

export type Use = readonly [id: string, metric: SandboxMetric];

/** The first of them uses most. */
export function heaviest(metrics: Readonly<Record<string, SandboxMetric>>, most: number): readonly Use[] {
  return Object.entries(metrics)
    .sort(([, a], [, b]) => b.memUsed - a.memUsed)
    .slice(0, most);
}

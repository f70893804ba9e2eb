/** What a cached layer is found by. Pure. */

import { createHash } from "node:crypto";
import type { BuildStep } from "../../../shared/agent-api/build-shapes.ts";
import { type Context, contextAfter, resolveStep } from "../steps/context.ts";

/** One step of a definition: resolved, where it runs, what comes out of it, and the key of that. */
export interface PlannedStep {
  readonly step: BuildStep;
  readonly before: Context;
  readonly after: Context;
  readonly key: string;
  /** It, or a step before it, is to be done again. */
  readonly forced: boolean;
}

export interface Definition {
  /** Layers are shared within a template only: a client names the hash of its files, and nobody checks it. */
  readonly templateId: string;
  /** Id of the image that the first step runs on. */
  readonly base: string;
  readonly context: Context;
  readonly steps: readonly BuildStep[];
  readonly force: boolean;
}

export function planSteps({ templateId, base, context, steps, force }: Definition): PlannedStep[] {
  const state = { context, key: digest(["template", templateId, base, sorted(context)]), forced: force };
  return steps.map((given) => {
    const before = state.context;
    const step = resolveStep(given, before);
    state.context = contextAfter(step, before);
    state.forced ||= step.force;
    // The number is only its place; force says how, not what.
    const { number: _number, force: _force, ...what } = step;
    state.key = digest([state.key, sorted(what), sorted(state.context)]);
    return { step, before, after: state.context, key: state.key, forced: state.forced };
  });
}

/** The image after provisioning, which is the same for every template. */
export function baseKey(image: string, provisioning: string): string {
  return digest(["base", image, provisioning]);
}

/** How many steps are done already, and by which key. 0 without any. */
export function cachedSteps(plan: readonly PlannedStep[], known: (key: string) => boolean): number {
  for (let count = plan.length; count > 0; count--) {
    const last = plan[count - 1];
    if (last !== undefined && !last.forced && known(last.key)) return count;
  }
  return 0;
}

function digest(parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

// The same text whatever order the fields were given in.
function sorted(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) =>
    part !== null && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

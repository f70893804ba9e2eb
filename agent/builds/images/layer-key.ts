/** Keys of cached layers. Pure. */

import { createHash } from "node:crypto";
import type { BuildStep } from "../../../shared/agent-api/build-shapes.ts";
import { contextAfter, resolveStep, type StepContext } from "../steps/context.ts";

/** A step as it was given, and the key of its result. */
export interface PlannedStep {
  readonly step: BuildStep;
  /** With its variables substituted as far as they are known without the image, for the log. */
  readonly shown: BuildStep;
  readonly key: string;
  /** This step or an earlier one must run again. */
  readonly forced: boolean;
}

export interface Definition {
  /** Layers are shared within one template only: the client names the hash of its files, and nothing verifies it. */
  readonly templateId: string;
  /** Id of the image on which the first step runs. */
  readonly base: string;
  readonly context: StepContext;
  readonly steps: readonly BuildStep[];
  readonly force: boolean;
}

/** Increased when the same steps have another result. */
const STEPS_VERSION = 4;
/** Stands for the home of a user, which only the image knows, in the log. */
const HOME = "$HOME";

/**
 * Each key stands for the base and all steps up to its own, as they were given.
 * @param onStep called with the number of each step before it is read
 * @throws {AppError} bad_request for a reference that is not understood
 */
export function planSteps(
  { templateId, base, context, steps, force }: Definition,
  onStep: (number: number) => void = () => undefined,
): PlannedStep[] {
  const first = digest(["template", STEPS_VERSION, templateId, base, sorted(context)]);
  const state = { context, key: first, forced: force };
  return steps.map((step) => {
    onStep(step.number);
    const shown = resolveStep(step, state.context, HOME);
    state.context = contextAfter(shown, state.context);
    state.forced ||= step.force;
    // `number` is only a position, and `force` does not change the result.
    const { number: _number, force: _force, ...what } = step;
    state.key = digest([state.key, sorted(what)]);
    return { step, shown, key: state.key, forced: state.forced };
  });
}

/** Key of the image after provisioning, equal for all templates. */
export function baseKey(image: string, provisioning: string): string {
  return digest(["base", image, provisioning]);
}

/** Number of leading steps whose result is cached; 0 if none. */
export function cachedSteps(plan: readonly PlannedStep[], known: (key: string) => boolean): number {
  for (let count = plan.length; count > 0; count--) {
    const last = plan[count - 1];
    if (last !== undefined && !last.forced && known(last.key)) return count;
  }
  return 0;
}

function digest(parts: readonly (string | number)[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

// The same text for any order of fields.
function sorted(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) =>
    part !== null && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

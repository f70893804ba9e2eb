/** The stages of a Dockerfile. As in BuildKit, only the last one is built, and those that it is from. Pure. */

import type { Instruction } from "dockerfile-ast";

/** What a `FROM` begins. */
export interface Stage {
  readonly from: Instruction;
  readonly body: readonly Instruction[];
}

export interface NamedStage extends Stage {
  /** An image, or the name of an earlier stage. */
  readonly image: string;
  /** Empty: the stage has none. */
  readonly name: string;
}

/** The instructions before the first `FROM`, and the stages. */
export function splitStages(instructions: readonly Instruction[]): {
  readonly before: readonly Instruction[];
  readonly stages: readonly Stage[];
} {
  const starts = instructions.flatMap((one, at) => (one.getKeyword().toUpperCase() === "FROM" ? [at] : []));
  const stages = starts.flatMap((start, at) => {
    const from = instructions[start];
    return from === undefined ? [] : [{ from, body: instructions.slice(start + 1, starts[at + 1]) }];
  });
  return { before: instructions.slice(0, starts[0]), stages };
}

/** The stages that make the last one, in their order, and those that do not. Names are of any case. */
export function neededStages(stages: readonly NamedStage[]): {
  readonly needed: readonly NamedStage[];
  readonly others: readonly NamedStage[];
} {
  const needed = new Set<NamedStage>();
  for (let at = stages.length - 1; at >= 0; ) {
    const stage = stages[at];
    if (stage === undefined) break;
    needed.add(stage);
    const below = stage.image.toLowerCase();
    // Of two stages with one name before it, Docker takes the later.
    at = stages.slice(0, at).findLastIndex(({ name }) => name !== "" && name.toLowerCase() === below);
  }
  return {
    needed: stages.filter((stage) => needed.has(stage)),
    others: stages.filter((stage) => !needed.has(stage)),
  };
}

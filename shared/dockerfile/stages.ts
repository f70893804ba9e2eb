/** The stages of a Dockerfile. As in BuildKit, only one is built, and those that it is from. Pure. */

import type { Instruction } from "dockerfile-ast";
import { DockerfileError } from "./instruction-text.ts";

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

/** Where the stage of this name is, or of this number from 0 on; -1: there is none. */
function stageAt(stages: readonly NamedStage[], target: string): number {
  const found = lastOf(stages, target);
  return found < 0 && /^\d+$/.test(target) && Number(target) < stages.length ? Number(target) : found;
}

/** Names are of any case. Of two stages with one name, Docker takes the later. */
function lastOf(stages: readonly NamedStage[], name: string): number {
  return stages.findLastIndex((stage) => stage.name !== "" && stage.name.toLowerCase() === name.toLowerCase());
}

/** Where the stage is that is built: the last one, unless a target is named; -1: there are no stages. @throws {DockerfileError} */
export function targetOf(stages: readonly NamedStage[], target: string | undefined): number {
  const at = target === undefined ? stages.length - 1 : stageAt(stages, target);
  if (target === undefined || at >= 0 || stages.length === 0) return at;
  const names = stages.map(({ name }) => name).filter(Boolean);
  const has = names.length === 0 ? "its stages have no names" : `its stages are ${names.join(", ")}`;
  throw new DockerfileError(`the Dockerfile has no stage '${target}': ${has}`);
}

/** The stages that make the one that is built, in their order, and those that do not. */
export function neededStages(
  stages: readonly NamedStage[],
  built: number,
): {
  readonly needed: readonly NamedStage[];
  readonly others: readonly NamedStage[];
} {
  const needed = new Set<NamedStage>();
  for (let at = built; at >= 0; ) {
    const stage = stages[at];
    if (stage === undefined) break;
    needed.add(stage);
    at = lastOf(stages.slice(0, at), stage.image);
  }
  return {
    needed: stages.filter((stage) => needed.has(stage)),
    others: stages.filter((stage) => !needed.has(stage)),
  };
}

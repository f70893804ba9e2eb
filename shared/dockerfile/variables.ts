/** The variables that ENV and ARG name, with their values as the platform substitutes them. Pure. */

import type { Instruction } from "dockerfile-ast";
import { refused, textOf } from "./instruction-text.ts";
import { refersTo } from "./substitute.ts";
import { valueOf, WordError, wordsOf } from "./words.ts";

type Variable = readonly [name: string, value: string];

/**
 * The variables of an ENV: `NAME=value …`, or one in the old form, without `=`. None stands before a value that reads it: in
 * Docker all values see what was set before the instruction, in a step of the platform also what stands before them.
 * @throws {DockerfileError}
 */
export function variablesOf(instruction: Instruction): readonly Variable[] {
  // Of a name that is there twice the later value counts.
  const left: Variable[] = [...new Map(pairsOf(instruction))];
  const done: Variable[] = [];
  while (left.length > 0) {
    const next = left.findIndex(([name], at) => left.every(([, value], of) => of === at || !reads(value, name)));
    if (next < 0) throw refused(instruction, "its values read each other: set one of them with an ENV of its own");
    done.push(...left.splice(next, 1));
  }
  return done;
}

function pairsOf(instruction: Instruction): readonly Variable[] {
  const { content } = textOf(instruction, []);
  const words = wordsOf(content);
  if (words[0]?.includes("=") !== true) {
    const [, name, value] = /^(\S+)\s+([^]+)$/.exec(content) ?? [];
    if (name === undefined || value === undefined) throw refused(instruction, "ENV takes a name and a value");
    return [[nameIn(name, instruction), valueIn(value, instruction)]];
  }
  return words.map((word) => {
    const [name, value] = pairOf(word, instruction);
    if (value === undefined) throw refused(instruction, `'${word}' has no =`);
    return [name, value] as const;
  });
}

/** The names of an ARG, each with its value where it has one. */
export function argumentsOf(instruction: Instruction): readonly (readonly [name: string, value: string | undefined])[] {
  return wordsOf(textOf(instruction, []).content).map((word) => pairOf(word, instruction));
}

function pairOf(word: string, instruction: Instruction): readonly [name: string, value: string | undefined] {
  const at = word.indexOf("=");
  if (at < 0) return [nameIn(word, instruction), undefined];
  return [nameIn(word.slice(0, at), instruction), valueIn(word.slice(at + 1), instruction)];
}

function nameIn(word: string, instruction: Instruction): string {
  const name = valueIn(word, instruction);
  if (name === "" || name.includes("$")) throw refused(instruction, `'${word}' is not the name of a variable`);
  return name;
}

/** The value of a word, as the platform substitutes it. @throws {DockerfileError} */
export function valueIn(word: string, instruction: Instruction): string {
  try {
    return valueOf(word);
  } catch (error) {
    throw error instanceof WordError ? refused(instruction, error.message) : error;
  }
}

function reads(value: string, name: string): boolean {
  return /^\w+$/.test(name) && refersTo(value, name);
}

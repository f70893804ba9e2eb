/** The text of an instruction as Docker reads it: continued lines are one, and what `<<` begins stands below. Pure. */

import type { Instruction } from "dockerfile-ast";

/** The file cannot be built as it is; the message says where and why. */
export class DockerfileError extends Error {}

export interface InstructionText {
  readonly flags: readonly (readonly [name: string, value: string])[];
  /** What follows the flags, on one line. */
  readonly content: string;
  /** The lines of the texts that `<<` began, with the line that ends each. */
  readonly below: readonly string[];
}

/** @throws {DockerfileError} also for a flag that is not known */
export function textOf(instruction: Instruction, knownFlags: readonly string[]): InstructionText {
  const { line, below } = joined(instruction);
  const { flags, content } = splitFlags(line.slice(instruction.getInstruction().length).trim());
  const unknown = flags.find(([name]) => !knownFlags.includes(name));
  if (unknown !== undefined) throw refused(instruction, `--${unknown[0]} is not supported`);
  checkBelow(instruction, content, below);
  return { flags, content, below };
}

export function lineOf(instruction: Instruction): number {
  return instruction.getRange().start.line + 1;
}

export function refused(instruction: Instruction, why: string): DockerfileError {
  return new DockerfileError(`Dockerfile, line ${lineOf(instruction)}: ${why}`);
}

/** Lines that end with a backslash and the next are one, without a blank between them; comments and empty lines are left out. */
function joined(instruction: Instruction): { readonly line: string; readonly below: readonly string[] } {
  const lines = instruction.getTextContent().split("\n");
  let line = "";
  for (const [index, text] of lines.entries()) {
    if (index > 0 && /^\s*(#.*)?$/.test(text)) continue;
    const goesOn = /(?:^|[^\\])\\[ \t]*$/.test(text);
    line += goesOn ? text.slice(0, text.lastIndexOf("\\")) : text;
    if (!goesOn) return { line, below: lines.slice(index + 1) };
  }
  return { line, below: [] };
}

function splitFlags(text: string): Pick<InstructionText, "flags" | "content"> {
  const flags: (readonly [string, string])[] = [];
  let content = text;
  for (;;) {
    const [all, name = "", value = ""] =
      /^--([^\s=]*)(?:=((?:"[^"]*"|'[^']*'|[^\s"'])*))?(?:\s+|$)/.exec(content) ?? [];
    if (all === undefined) return { flags, content };
    content = content.slice(all.length);
    if (name === "") return { flags, content };
    flags.push([name, value.replaceAll(/["']/g, "")]);
  }
}

/** Each text needs its end: without one the parser takes the rest of the file for it. */
function checkBelow(instruction: Instruction, content: string, below: readonly string[]): void {
  const begun = content.split(/\s+/).flatMap((word) => {
    const [, tabs = "", , name] = /^<<(-?)(["']?)([^<"'].*)\2$/.exec(word) ?? [];
    return name === undefined ? [] : [{ name, tabs }];
  });
  if (begun.length === 0 && below.some((line) => line.trim() !== ""))
    throw refused(instruction, "two backslashes at the end of a line are no continuation");
  const withTabs = begun.some(({ tabs }) => tabs !== "");
  let from = 0;
  for (const { name } of begun) {
    const isEnd = (line: string) => (withTabs ? line.replace(/^\t+/, "") : line) === name;
    const end = below.findIndex((line, index) => index >= from && isEnd(line));
    if (end < 0) throw refused(instruction, `the text that <<${name} begins has no end`);
    from = end + 1;
  }
}

/** The texts of a Dockerfile that COPY and ADD make files of: `COPY <<EOF /etc/app.conf`, with its lines below. Pure. */

import type { Instruction } from "dockerfile-ast";
import { type InstructionText, refused } from "./instruction-text.ts";
import { valueOf, WordError } from "./words.ts";

export interface Text {
  /** The word that begins and ends it, which is also the file's name. */
  readonly name: string;
  /** With a line end behind each line. */
  readonly text: string;
  /** Whether its variables have values, which quotes around the word forbid. */
  readonly hasVariables: boolean;
}

/**
 * The texts by the words that begin them, without quotes.
 * @throws {DockerfileError} for a word that is no name of a file
 */
export function textsOf({ content, below }: InstructionText, instruction: Instruction): ReadonlyMap<string, Text> {
  const texts = new Map<string, Text>();
  let from = 0;
  for (const word of content.split(/\s+/)) {
    const [all, tabs, quote, name = ""] = /^<<(-?)(["']?)([^<"'].*)\2$/.exec(word) ?? [];
    if (all === undefined) continue;
    if (!/^[\w.-]*[\w-][\w.-]*$/.test(name))
      throw refused(instruction, `${word}: '${name}' is not the name of a file; write a word such as <<EOF`);
    const shown = (line: string) => (tabs === "-" ? line.replace(/^\t+/, "") : line);
    const end = below.findIndex((line, at) => at >= from && shown(line) === name);
    if (end < 0) throw refused(instruction, `the text that <<${name} begins has no end`);
    const lines = below.slice(from, end).map((line) => `${shown(line)}\n`);
    texts.set(`<<${tabs}${name}`, { name, text: lines.join(""), hasVariables: quote === "" });
    from = end + 1;
  }
  return texts;
}

/**
 * What is in the file, as the platform substitutes it: as in Docker the text keeps its quotes and loses backslashes.
 * @throws {DockerfileError} for a backslash before a variable
 */
export function valueInText({ name, text }: Text, instruction: Instruction): string {
  const word = text.replaceAll(/\\[^]|["']/g, (found) => (found.length > 1 ? found : `\\${found}`));
  try {
    return valueOf(word);
  } catch (error) {
    if (!(error instanceof WordError)) throw error;
    // The error of the word would show the whole text.
    const why = `the text that <<${name} begins has a backslash before a variable, which no value can have here`;
    throw refused(instruction, `${why}: <<'${name}' keeps the text as it is`);
  }
}

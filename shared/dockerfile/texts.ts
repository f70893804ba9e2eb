/** The texts of a Dockerfile that COPY and ADD make files of: `COPY <<EOF /etc/app.conf`, with its lines below. Pure. */

import type { Instruction } from "dockerfile-ast";
import { type InstructionText, refused } from "./instruction-text.ts";

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

/** The text as a word whose quotes stay: of the rest Docker takes backslashes off, as it does in words. */
export function asWord(text: string): string {
  return text.replaceAll(/\\[^]|["']/g, (found) => (found.length > 1 ? found : `\\${found}`));
}

/** What a Dockerfile means here that its author may not expect, as notes. Pure. */

import type { Dockerfile, Instruction } from "dockerfile-ast";
import { type InstructionText, lineOf, refused } from "./instruction-text.ts";
import { jsonWords } from "./shell-text.ts";

/** Of a RUN, CMD or ENTRYPOINT: the notes that the reader should have. */
export function notesOfCommand(instruction: Instruction, text: InstructionText, shell: readonly string[]): string[] {
  if (jsonWords(text) !== undefined) return [];
  const where = `line ${lineOf(instruction)}:`;
  const notes: string[] = [];
  if (looksLikeList(text.content))
    notes.push(
      `${where} ${instruction.getKeyword()} is no list in JSON, so a shell runs it with its brackets: put each word between "", with commas`,
    );
  if (shell.length === 0 && ECHO.test(text.content))
    notes.push(
      `${where} echo of bash writes \\n as it is, where that of Debian's /bin/sh ends the line: write printf, or SHELL ["/bin/sh", "-c"] before it`,
    );
  return notes;
}

/** Not what `[` of a shell tests, such as `[ "$A" = "b" ]`: a blank stands behind that, and no commas between its words. */
function looksLikeList(content: string): boolean {
  return /^\[.*\]$/s.test(content) && (/^\[["'“”‘’]/.test(content) || /["'“”‘’]\s*,\s*["'“”‘’]/.test(content));
}

/** An echo, without `-e`, of a word in quotes with an escape of a line end or a tab. */
const ECHO = /(?:^|[\s;&|({])echo\s+(?:-n\s+)?(?:"(?:[^"\\]|\\[^nt])*\\[nt]|'(?:[^'\\]|\\[^nt'])*\\[nt])/;

/** Of a flag of RUN. @throws {DockerfileError} for one that a build cannot follow */
export function notesOfFlag([name, value]: readonly [string, string], instruction: Instruction): string[] {
  if (name === "network" && value === "default") return [];
  if (name === "network") throw refused(instruction, "--network is not supported");
  const type = /(?:^|,)type=(\w+)/.exec(value)?.[1] ?? "bind";
  const means = MOUNTS.get(type);
  if (means === undefined)
    throw refused(instruction, `--mount of type ${type} is not supported${WAYS_OUT.get(type) ?? ""}`);
  return [`line ${lineOf(instruction)}: --mount=type=${type} ${means}`];
}

const WAYS_OUT: ReadonlyMap<string, string> = new Map([
  ["bind", ": COPY the files before this RUN, which may remove them"],
  ["secret", ": what a build reads stays in its template, so fetch with secrets outside, and COPY"],
  ["ssh", ": a build has no keys, so fetch outside, and COPY"],
]);

const MOUNTS: ReadonlyMap<string, string> = new Map([
  ["cache", "keeps no cache, and its files stay in the template"],
  ["tmpfs", "is a directory of the template, and its files stay there"],
]);

/** Docker lets another program read the file where its first lines name one. */
export function notesOfSyntax(parsed: Dockerfile): string[] {
  const syntax = parsed.getDirectives().find((directive) => directive.getName().toLowerCase() === "syntax");
  const name = syntax?.getValue() ?? "";
  if (name === "" || /(^|\/)docker\/dockerfile(-upstream)?([:@]|$)/.test(name)) return [];
  return [`the syntax ${name} is read as that of docker/dockerfile`];
}

/** Of where and as whom the start command runs: a template takes neither from its image. */
export function notesOfStart(
  start: string | undefined,
  { hasUser, hasWorkdir }: { readonly hasUser: boolean; readonly hasWorkdir: boolean },
): string[] {
  if (start === undefined) return [];
  return [
    ...(hasUser
      ? []
      : ["the file has no USER: what it starts runs as user, in Docker as that of the image, root in most"]),
    ...(hasWorkdir
      ? []
      : ["the file has no WORKDIR: what it starts runs in /home/user, in Docker in that of the image, / in most"]),
  ];
}

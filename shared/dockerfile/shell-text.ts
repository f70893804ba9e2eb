/** What a shell runs for the forms in which a Dockerfile writes commands. Pure. */

import type { InstructionText } from "./instruction-text.ts";

/** The text for a shell: a command with the texts that it reads, or such a text alone. */
export function script({ content, below }: InstructionText, shell: readonly string[]): string {
  if (below.length === 0) return inShell(content, shell);
  const [, tabs, , end] = /^<<(-?)(['"]?)([^\s<'"]+)\2$/.exec(content) ?? [];
  if (end === undefined) return inShell([content, ...below].join("\n"), shell);
  const lines = below.slice(0, -1);
  const text = (tabs === "-" ? lines.map((line) => line.replace(/^\t+/, "")) : lines).join("\n");
  return text.startsWith("#!") ? program(text, end) : inShell(text, shell);
}

/** The text as the last word of the shell that the file names, if it names one. */
export function inShell(text: string, shell: readonly string[]): string {
  return shell.length === 0 || text === "" ? text : commandOf([...shell, text]);
}

/** A text that names its own interpreter is run by that, as a file. @param end a line that the text does not have */
function program(text: string, end: string): string {
  const file = '"$svc_file"';
  return (
    `svc_file=$(mktemp) && cat >${file} <<'${end}'\n${text}\n${end}\n` +
    `chmod 0755 ${file} && ${file}; svc_code=$?; rm -f ${file}; exit $svc_code`
  );
}

/** The words of the exec form; undefined: the shell form. */
export function jsonWords({ content }: InstructionText): readonly string[] | undefined {
  if (!content.startsWith("[")) return undefined;
  try {
    const words = JSON.parse(content) as unknown;
    if (Array.isArray(words) && words.every((word) => typeof word === "string")) return words;
  } catch {
    // As in Docker, what only looks like JSON is the shell form.
  }
  return undefined;
}

/** What a shell runs as the command: the shell form as it is, the exec form with its words quoted. */
export function commandOf(command: readonly string[] | string): string {
  return typeof command === "string" ? command : command.map(quoted).join(" ");
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** As in Docker, an empty exec form of ENTRYPOINT or CMD is none, and the shell form of ENTRYPOINT takes nothing from CMD. */
export function startCommandOf({
  entrypoint = [],
  command = [],
}: {
  readonly entrypoint: readonly string[] | string | undefined;
  readonly command: readonly string[] | string | undefined;
}): string | undefined {
  if (entrypoint.length === 0) return command.length === 0 ? undefined : commandOf(command);
  if (typeof entrypoint === "string" || command.length === 0) return commandOf(entrypoint);
  return `${commandOf(entrypoint)} ${typeof command === "string" ? `/bin/sh -c ${quoted(command)}` : commandOf(command)}`;
}

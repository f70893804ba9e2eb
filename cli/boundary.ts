/** Where the words of another program begin on a line: `svc sandbox exec ID ls -la` means what it does in `docker exec`. Pure. */

import type { Command, Option } from "./definition.ts";
import { usage } from "./failure.ts";
import { COMMON, shownOptions } from "./program.ts";

/** How `docker exec` and `kubectl exec` ask for a terminal. */
const TERMINAL = /^(?:-[dit]*i[dit]*|--interactive|--stdin|--tty)$/;

/**
 * The line with `--` before the program, so that no option of the program is taken for one of the command.
 *
 * @throws {Failure} the line asks for a terminal
 */
export function withBoundary(commands: readonly Command[], words: readonly string[]): readonly string[] {
  const command = commands.find(({ name, runs }) => runs === true && isPrefix(name.split(" "), words));
  if (command === undefined) return words;
  const options = [...(command.options ?? []), ...shownOptions(command), ...COMMON];
  // The last argument is the program.
  let before = (command.arguments?.length ?? 1) - 1;
  for (let at = command.name.split(" ").length; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word === "--") return words;
    if (TERMINAL.test(word)) {
      const wayOut = `\`svc sandbox connect SANDBOX\` opens a terminal; \`svc ${command.name}\` passes input on by itself where that is a pipe or a file`;
      throw usage(`unknown option '${word}'`, wayOut);
    }
    if (word.startsWith("-") && word !== "-") {
      if (takesNext(options, word)) at++;
    } else if (before-- === 0) return [...words.slice(0, at), "--", ...words.slice(at)];
  }
  return words;
}

function isPrefix(name: readonly string[], words: readonly string[]): boolean {
  return name.every((word, index) => words[index] === word);
}

/** Whether the value of the option is the next word: not that of `--cwd=/`, of `-uroot`, or of a switch. */
function takesNext(options: readonly Option[], word: string): boolean {
  const named = (flag: string) =>
    options.find(({ flags }) => flags.split(/, | /).includes(flag))?.flags.includes("<") === true;
  if (word.startsWith("--")) return named(word);
  const letters = word.slice(1);
  const valued = letters.split("").findIndex((letter) => named(`-${letter}`));
  return valued === letters.length - 1;
}

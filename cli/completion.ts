/** What may follow the words of a line: names of groups and commands, flags, values of flags. Pure. */

import type { Command, Known } from "./definition.ts";
import { COMMON, shownOptions } from "./program.ts";

/** @param words after `svc`; the last one is what is being typed, perhaps nothing */
export function candidates(known: Known, words: readonly string[]): Candidates {
  const last = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const commands = known.commands.filter(({ hidden }) => hidden !== true);
  const single = commands.filter(({ name }) => !name.includes(" ")).map(({ name }) => name);
  if (before.length === 0) return only([...known.groups.map(({ name }) => name), ...single], last);
  const [first = ""] = before;
  const length = single.includes(first) ? 1 : 2;
  if (before.length < length) {
    const ofGroup = commands.filter(({ name }) => name.startsWith(`${first} `));
    return only(
      ofGroup.map(({ name }) => name.slice(first.length + 1)),
      last,
    );
  }
  const command = commands.find(({ name }) => name === before.slice(0, length).join(" "));
  return command === undefined || before.includes("--")
    ? only([], last)
    : ofCommand(command, before.slice(length), last);
}

interface Candidates {
  readonly words: readonly string[];
  readonly asksForSandbox: boolean;
}

function only(all: readonly string[], last: string): Candidates {
  return { words: all.filter((word) => word.startsWith(last)), asksForSandbox: false };
}

function ofCommand(command: Command, before: readonly string[], last: string): Candidates {
  const options = [...(command.options ?? []), ...shownOptions(command), ...COMMON];
  const flagBefore = before.at(-1) ?? "";
  const taking = options.find(({ flags }) => flags.includes("<") && flags.split(/[\s,]+/).includes(flagBefore));
  if (taking !== undefined) return only(taking.choices ?? [], last);
  if (last.startsWith("-")) {
    return only([...options.flatMap(({ flags }) => flags.match(/--[a-z-]+/g) ?? []), "--help"], last);
  }
  const isFirst = before.every((word) => word.startsWith("-"));
  const takesSandbox = /^[<[]sandbox/.test(command.arguments?.[0]?.name ?? "");
  return { words: [], asksForSandbox: takesSandbox && isFirst };
}

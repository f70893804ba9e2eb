/** What may follow the words of a line: names of groups and commands, flags, values of flags. Pure. */

import type { Command, Group } from "./definition.ts";
import { COMMON, shownOptions } from "./program.ts";

export interface Known {
  readonly commands: readonly Command[];
  readonly groups: readonly Group[];
}

/** @param words after `svc`; the last one is what is being typed, perhaps nothing */
export function candidates(
  { commands, groups }: Known,
  words: readonly string[],
): { readonly words: readonly string[]; readonly asksForSandbox: boolean } {
  const last = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const only = (all: readonly string[]) => ({
    words: all.filter((word) => word.startsWith(last)),
    asksForSandbox: false,
  });
  const shown = commands.filter(({ hidden }) => hidden !== true);
  const single = shown.filter(({ name }) => !name.includes(" ")).map(({ name }) => name);
  if (before.length === 0) return only([...groups.map(({ name }) => name), ...single]);
  const length = single.includes(before[0] ?? "") ? 1 : 2;
  if (before.length < length) {
    const ofGroup = shown.filter(({ name }) => name.startsWith(`${before[0]} `));
    return only(ofGroup.map(({ name }) => name.slice((before[0] ?? "").length + 1)));
  }
  const command = shown.find(({ name }) => name === before.slice(0, length).join(" "));
  if (command === undefined || before.includes("--")) return only([]);
  const options = [...(command.options ?? []), ...shownOptions(command), ...COMMON];
  const flagBefore = before.at(-1) ?? "";
  const taking = options.find(({ flags }) => flags.includes("<") && flags.split(/[\s,]+/).includes(flagBefore));
  if (taking !== undefined) return only(taking.choices ?? []);
  if (last.startsWith("-")) return only([...options.flatMap(({ flags }) => flags.match(/--[a-z-]+/g) ?? []), "--help"]);
  const isFirst = before.slice(length).every((word) => word.startsWith("-"));
  const takesSandbox = /^[<[]sandbox/.test(command.arguments?.[0]?.name ?? "");
  return { words: [], asksForSandbox: takesSandbox && isFirst };
}

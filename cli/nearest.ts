/** What a word means that is no command here, and is one in a group, or of other tools: commander's own suggestion knows letters alone. Pure. */

import type { Known } from "./completion.ts";

/** Words of `docker`, `kubectl` and shells, and what they are called here. */
const SAME: Readonly<Record<string, readonly string[]>> = {
  attach: ["connect"],
  cat: ["logs"],
  delete: ["kill", "remove", "delete"],
  describe: ["info", "explain"],
  fix: ["doctor"],
  get: ["info", "list"],
  inspect: ["info"],
  ls: ["list"],
  new: ["create"],
  ps: ["list"],
  rm: ["kill", "delete", "remove"],
  run: ["exec", "create"],
  shell: ["connect"],
  show: ["info"],
  ssh: ["connect"],
  start: ["resume", "create"],
  stats: ["metrics", "top"],
  stop: ["pause", "kill"],
  terminal: ["connect"],
  tunnel: ["forward"],
};
const MOST = 4;

/** The commands that the words may mean, in the order of help; none: they begin with a command, or nothing is known. */
export function meant({ commands, groups }: Known, [first = "", second = ""]: readonly string[]): readonly string[] {
  const shown = commands.filter(({ hidden }) => hidden !== true).map(({ name }) => name);
  if (shown.includes(first)) return [];
  const isGroup = groups.some(({ name }) => name === first);
  const word = isGroup ? second : first;
  if (!/^[a-z]/.test(word) || (isGroup && shown.includes(`${first} ${second}`))) return [];
  const of = isGroup ? shown.filter((name) => name.startsWith(`${first} `)) : shown;
  const ending = (wanted: string) => of.filter((name) => name.split(" ").at(-1) === wanted);
  const same = Object.hasOwn(SAME, word) ? (SAME[word] ?? []) : [];
  return [...new Set([word, ...same].flatMap(ending))].slice(0, MOST);
}

/**
 * What a word means that is no command or option here, and is one in a group, or of other tools: commander's own suggestion knows letters
 * alone, and says `resume` for `remove`. Pure.
 */

import type { Known, Option } from "./definition.ts";

/** Words of `docker`, `kubectl`, `gh` and shells, and what they are called here: the last word of commands, or the whole of one. */
const SAME: Readonly<Record<string, readonly string[]>> = {
  add: ["create"],
  attach: ["connect"],
  cat: ["logs"],
  clone: ["fork"],
  commit: ["snapshot create"],
  copy: ["cp"],
  create: ["build"],
  delete: ["kill", "remove", "delete"],
  destroy: ["kill", "remove", "delete"],
  describe: ["info", "explain"],
  fix: ["doctor"],
  get: ["info", "list"],
  images: ["template list"],
  inspect: ["info"],
  logout: ["context remove"],
  ls: ["list"],
  new: ["create"],
  "port-forward": ["forward"],
  prune: ["gc"],
  ps: ["list"],
  remove: ["kill", "delete"],
  revoke: ["delete"],
  rm: ["kill", "delete", "remove"],
  run: ["exec", "create"],
  set: ["create", "update", "limit"],
  shell: ["connect"],
  show: ["info"],
  ssh: ["connect"],
  start: ["resume", "create"],
  stats: ["metrics", "top"],
  status: ["info"],
  stop: ["pause", "kill"],
  terminal: ["connect"],
  terminate: ["kill", "delete"],
  top: ["metrics"],
  tunnel: ["forward"],
  undrain: ["uncordon"],
  unpause: ["resume"],
  version: ["--version"],
};
const MOST = 4;

/** Options of the same tools. Only those count that the command has. */
const SAME_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  "--all": ["--state"],
  "-a": ["--state"],
  "--dockerfile": ["--file"],
  "--filter": ["--selector", "--state"],
  "--format": ["--output"],
  "--json": ["--output json"],
  "--label": ["--selector", "--metadata"],
  "--memory": ["--memory-size"],
  "--mount": ["--volume"],
  "-v": ["--volume"],
  "--name": ["--metadata"],
  "--namespace": ["--project"],
  "-n": ["--project"],
  "--no-cache": ["--force"],
  "--quiet": ["--output name"],
  "-q": ["--output name"],
  "--tail": ["--limit"],
  "--watch": ["--follow"],
  "-w": ["--follow", "--cwd"],
  "--workdir": ["--cwd"],
  "--yes": ["--force"],
  "-y": ["--force"],
};

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
  const words = [word, ...same];
  const isWhole = (name: string) => name.includes(" ") || name.startsWith("-");
  const found = words.flatMap((name) => (isWhole(name) ? [name] : ending(name)));
  // `svc sandbox explain ID`: a command without a group.
  return [...new Set(found.length > 0 ? found : words.filter((name) => shown.includes(name)))].slice(0, MOST);
}

/** What the parser says of a mistake, with the option that is meant where one is known, and otherwise where more is said. */
export function withWayOut(text: string, options: readonly Option[], help: string): string {
  const [, option = ""] = /^error: unknown option '([^'=]*)/.exec(text) ?? [];
  const flags = options.flatMap((one) => one.flags.split(/[ ,]+/));
  const same = Object.hasOwn(SAME_OPTIONS, option) ? (SAME_OPTIONS[option] ?? []) : [];
  const known = same.filter((name) => flags.includes(name.split(" ", 1)[0] ?? ""));
  if (known.length > 0) return `${text.split("\n", 1)[0] ?? ""}\n(Did you mean ${known.join(", ")}?)\n`;
  const isClear = text.includes("Did you mean") || !/^error: (?:unknown|missing|too many)/.test(text);
  return isClear ? text : `${text}(\`${help}\` shows what there is)\n`;
}

/** Completion in shells: one small function for each, which asks `svc complete` what may follow. */

import { candidates } from "../../completion.ts";
import type { Context } from "../../context.ts";
import type { Action, Known } from "../../definition.ts";
import { usage } from "../../failure.ts";

const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_svc() {
  local IFS=$'\\n'
  COMPREPLY=($(svc complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _svc svc`,
  zsh: `#compdef svc
_svc() {
  local -a found
  found=("\${(@f)$(svc complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n $found ]]; then compadd -a found; else _files; fi
}
if [[ $funcstack[1] == _svc ]]; then _svc "$@"; else compdef _svc svc; fi`,
  fish: `complete -c svc -a '(set -l words (commandline -opc)[2..]; svc complete -- $words (commandline -ct) 2>/dev/null)'`,
};

/** Completion gives up after this time: a user who presses Tab must not wait for a platform that does not answer. */
const LONGEST_MS = 2_000;
const MOST_IDS = 100;

export const completion: Action = async ({ out }, { first: shell }) => {
  const script = SCRIPTS[shell];
  if (script === undefined) throw usage(`'${shell}' is no shell that svc completes in`, "there are bash, zsh and fish");
  await out.bytes(Buffer.from(`${script}\n`));
};

export function completer(known: Known): Action {
  return (context, { rest }) => complete(context, rest, known);
}

async function complete(context: Context, rest: readonly string[], known: Known): Promise<void> {
  const { words, asksForSandbox } = candidates(known, rest);
  if (words.length > 0) await context.out.line(...words);
  if (!asksForSandbox) return;
  const last = rest.at(-1) ?? "";
  const read = async () => {
    const api = await context.api();
    return api.all("GET /v2/sandboxes", { query: {} }, MOST_IDS);
  };
  const late = new Promise<readonly []>((resolve) => void setTimeout(() => resolve([]), LONGEST_MS).unref());
  const found = await Promise.race([read().catch(() => []), late]);
  await context.out.line(...found.map(({ sandboxID }) => sandboxID).filter((id) => id.startsWith(last)));
}
